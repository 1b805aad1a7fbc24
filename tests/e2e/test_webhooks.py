# SPDX-License-Identifier: Apache-2.0
"""Incoming webhooks: the requests of the tools that use them, what is answered, and that the secret stays one."""
import json
from urllib.parse import urlencode, urlsplit

import pytest
import requests

from tests.support.environment import Environment, running
from tests.support.metrics import metric
from tests.support.wait import wait_until

BURST = 10
WEBHOOKS_MAX = 1000
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
# What Alertmanager 0.27 sends for its default templates.
ALERTMANAGER = {
    "channel": "#elsewhere", "username": "Alertmanager", "attachments": [
        {"title": "[FIRING:1] InstanceDown (node:9100 critical)", "title_link": "http://alerts/#/alerts?receiver=slack", "text": "",
         "fallback": "[FIRING:1] InstanceDown | http://alerts", "callback_id": "", "footer": "", "color": "danger", "mrkdwn_in": ["fallback", "pretext", "text"]}]}
GRAFANA = {
    "channel": "elsewhere", "text": "", "attachments": [
        {"color": "#D63232", "title": "[FIRING:1] CPU", "title_link": "http://grafana/alerting/list", "text": "**Firing**\n\nValue: B=22",
         "fallback": "[FIRING:1] CPU", "footer": "Grafana v11.1.0", "footer_icon": "https://grafana.com/static/assets/img/fav32.png",
         "ts": 1795266528, "fields": None}], "blocks": None, "icon_emoji": ":fire:", "icon_url": "", "username": "Grafana", "thread_ts": ""}
SLACK_GO = {"text": "from go", "replace_original": False, "delete_original": False}


class Hook:
    """A webhook of a channel that ann is in."""

    def __init__(self, workspace, **args):
        self.workspace = workspace
        self.ann = workspace.user()
        self.channel = workspace.channel(self.ann)
        self.made = workspace.admin.ok("admin.webhooks.create", channel=self.channel, name="Alerts", **args)["webhook"]
        self.url = self.made["url"]

    def post(self, body, content_type=JSON, **headers):
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return requests.post(self.url, data=data, headers={"Content-Type": content_type, **headers}, timeout=60)

    def says(self, status, word, body, content_type=JSON, **headers):
        reply = self.post(body, content_type, **headers)
        assert (reply.status_code, reply.text) == (status, word)
        assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
        return reply

    def last(self):
        return self.ann.history(self.channel)[0]


@pytest.fixture
def hook(workspace):
    return Hook(workspace)


def form(payload):
    return urlencode({"payload": json.dumps(payload)})


@pytest.mark.parametrize(("body", "content_type"), [
    (json.dumps({"text": "Grüße"}), JSON),
    (json.dumps({"text": "Grüße"}, ensure_ascii=False).encode(), "application/json; charset=utf-8"),
    (json.dumps({"text": "Grüße"}), FORM),  # curl -d '{"text":…}'
    (json.dumps({"text": "Grüße"}), "text/plain"),
    (json.dumps({"text": "Grüße"}), "application/vnd.acme+json"),
    (b" \n" + json.dumps({"text": "Grüße"}).encode(), ""),
    (form({"text": "Grüße"}), FORM),
    (form({"text": "Grüße"}), ""),
    (b'--b\r\nContent-Disposition: form-data; name="payload"\r\n\r\n{"text":"Gr\xc3\xbc\xc3\x9fe"}\r\n--b--\r\n', "multipart/form-data; boundary=b"),
])
def test_each_way_to_send(hook, body, content_type):
    hook.says(200, "ok", body, content_type)
    message = hook.last()
    assert message["text"] == "Grüße" and message["username"] == "Alerts" and message["bot_id"] == hook.made["id"]
    assert message["subtype"] == "bot_message"
    assert hook.ann.unread(hook.channel) == 1


@pytest.mark.parametrize(("payload", "encode", "content_type", "title"), [
    (ALERTMANAGER, json.dumps, JSON, "[FIRING:1] InstanceDown (node:9100 critical)"),
    (GRAFANA, json.dumps, JSON, "[FIRING:1] CPU"),
    (GRAFANA, form, FORM, "[FIRING:1] CPU"),
])
def test_alerts(hook, payload, encode, content_type, title):
    hook.says(200, "ok", encode(payload), content_type)
    message = hook.last()
    assert message["attachments"][0]["title"] == title and message["username"] == payload["username"]


def test_slack_go(hook):
    hook.says(200, "ok", SLACK_GO)
    assert hook.last()["text"] == "from go"


def test_appearance(workspace):
    hook = Hook(workspace, icon_url="https://example.com/a.png")
    hook.says(200, "ok", {"text": "its own"})
    assert hook.last()["icons"] == {"image_48": "https://example.com/a.png"}
    hook.says(200, "ok", {"text": "the sender's", "username": "Other", "icon_emoji": ":fire:"})
    message = hook.last()
    assert message["icons"] == {"emoji": ":fire:"} and message["username"] == "Other"


def test_threads_and_blocks(hook):
    root = hook.ann.post(hook.channel, "root")
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*b*"}}]
    hook.says(200, "ok", {"thread_ts": root, "blocks": blocks, "text": "in a thread"})
    replies = hook.ann.ok("channels.replies", channel=hook.channel, ts=root)["messages"]
    assert [(m["text"], m.get("blocks")) for m in replies[1:]] == [("in a thread", blocks)]


@pytest.mark.parametrize(("status", "word", "body", "content_type"), [
    (400, "invalid_payload", "{", JSON),
    (400, "invalid_payload", "[]", JSON),
    (400, "invalid_payload", "text=hello", FORM),
    (400, "invalid_payload", "payload=hello", FORM),
    (400, "invalid_payload", b"payload=%ff", FORM),
    (400, "invalid_payload", "x" * 3, "multipart/form-data; boundary=b"),
    (400, "invalid_payload", json.dumps({"text": "x", "blocks": "x"}), JSON),
    (400, "invalid_payload", '{"a":' * 65 + "1" + "}" * 65, JSON),
    (400, "no_text", "{}", JSON),
    (400, "no_text", json.dumps({"text": " "}), JSON),
    (400, "no_text", form({"username": "x"}), FORM),
    (400, "no_text", "", JSON),
    (400, "too_many_attachments", json.dumps({"attachments": [{"text": "x"}] * 101}), JSON),
    (413, "request_too_large", json.dumps({"text": "x" * (2 << 20)}), JSON),
])
def test_refusals(hook, status, word, body, content_type):
    hook.says(status, word, body, content_type)
    assert hook.ann.history(hook.channel) == []


def test_other_verbs(hook):
    reply = requests.get(hook.url, timeout=60)
    assert (reply.status_code, reply.headers["Allow"], reply.text) == (405, "POST", "method_not_allowed")


def test_a_channel_that_takes_nothing(workspace):
    hook = Hook(workspace)
    bot = [m for m in hook.ann.ok("channels.members", channel=hook.channel)["members"] if m != hook.ann.id][0]
    hook.ann.ok("channels.archive", channel=hook.channel)
    hook.says(410, "channel_is_archived", {"text": "x"})
    hook.ann.ok("channels.unarchive", channel=hook.channel)
    hook.says(200, "ok", {"text": "x"})
    hook.ann.ok("channels.kick", channel=hook.channel, user=bot)
    hook.says(403, "action_prohibited", {"text": "x"})


def test_the_private_channel_that_it_was_removed_from(workspace):
    ann = workspace.user()
    channel = workspace.channel(ann, private=True)
    hook = Hook(workspace)
    hook.url = workspace.admin.ok("admin.webhooks.create", channel=channel, name="in secret")["webhook"]["url"]
    hook.says(200, "ok", {"text": "x"})
    bot = [m for m in ann.ok("channels.members", channel=channel)["members"] if m != ann.id][0]
    ann.ok("channels.kick", channel=channel, user=bot)
    hook.says(404, "channel_not_found", {"text": "x"})


def test_keys(hook):
    for _ in range(2):
        hook.says(200, "ok", {"text": "once"}, **{"Idempotency-Key": "k"})
    hook.says(409, "idempotency_key_reused", {"text": "other"}, **{"Idempotency-Key": "k"})
    assert [m["text"] for m in hook.ann.history(hook.channel)] == ["once"]


def test_what_is_no_secret_looks_alike(workspace):
    hook = Hook(workspace)
    gone = workspace.admin.ok("admin.webhooks.create", channel=hook.channel, name="gone")["webhook"]
    workspace.admin.ok("admin.webhooks.delete", webhook_id=gone["id"])
    tokens = (hook.ann.token, workspace.admin.token)
    base = hook.url.split("/services/")[0] + "/services/"
    good = hook.url[len(base):]
    paths = [gone["url"][len(base):], good[:-1], good + "x", good + "/", good.lower(), "T1/B1/secret", "x" * 300, *tokens]

    def answer(path, body):
        reply = requests.post(base + path, data=body, headers={"Content-Type": JSON}, timeout=60)
        kept = {k: v for k, v in reply.headers.items() if k not in ("Date", "X-Request-Id")}
        return reply.status_code, reply.content, kept

    for body in ('{"text":"x"}', "{", '{"text":"%s"}' % ("x" * 5000)):
        answers = [answer(path, body) for path in paths]
        assert answers[0][:2] == (404, b"no_service") and all(a == answers[0] for a in answers)
    assert hook.ann.history(hook.channel) == []


def test_the_secret_opens_nothing_else(hook):
    secret = urlsplit(hook.url).path.removeprefix("/services/")
    for token in (secret, secret.rsplit("/", 1)[1]):
        reply = requests.post(f"{hook.workspace.admin.url}/api/auth.test", headers={"Authorization": f"Bearer {token}"}, timeout=60)
        assert reply.json()["error"] == "invalid_auth"
    reply = requests.post(f"{hook.workspace.admin.url}/api//services", data={"token": secret, "text": "x"}, timeout=60)
    assert reply.json()["error"] == "unknown_method"


def test_a_deleted_bot(hook):
    bot = [m for m in hook.ann.ok("channels.members", channel=hook.channel)["members"] if m != hook.ann.id][0]
    hook.workspace.admin.ok("admin.users.setActive", user_id=bot, active=False)
    hook.says(404, "no_service", {"text": "x"})
    hook.workspace.admin.ok("admin.users.setActive", user_id=bot, active=True)
    hook.says(200, "ok", {"text": "x"})


def test_deleting(hook):
    admin, other = hook.workspace.admin, hook.workspace.channel(hook.ann)
    second = admin.ok("admin.webhooks.create", channel=other, name="Second", icon_emoji=":eyes:")["webhook"]
    listed = admin.ok("admin.webhooks.list")["webhooks"]
    kept = {w["id"]: {k: v for k, v in w.items() if k not in ("id", "created")} for w in listed}
    assert kept == {hook.made["id"]: {"channel": hook.channel, "name": "Alerts"},
                    second["id"]: {"channel": other, "name": "Second", "icon_emoji": ":eyes:"}}
    hook.says(200, "ok", {"text": "stays"})
    admin.ok("admin.webhooks.delete", webhook_id=hook.made["id"])
    hook.says(404, "no_service", {"text": "x"})
    assert [m["text"] for m in hook.ann.history(hook.channel)] == ["stays"]
    assert hook.ann.ok("channels.members", channel=hook.channel)["members"] == [hook.ann.id]
    assert [w["id"] for w in admin.ok("admin.webhooks.list")["webhooks"]] == [second["id"]]
    admin.fails("webhook_not_found", "admin.webhooks.delete", webhook_id=hook.made["id"])


def test_on_every_instance_a_deleted_one_ends(environment, hook):
    elsewhere = environment.urls[1] + urlsplit(hook.url).path

    def post():
        return requests.post(elsewhere, json={"text": "x"}, timeout=60)

    assert post().text == "ok"
    hook.workspace.admin.ok("admin.webhooks.delete", webhook_id=hook.made["id"])
    wait_until(lambda: post().text == "no_service", timeout=4)


def test_bad_arguments(workspace, hook):
    admin = workspace.admin
    for name in ("", "x" * 81):
        assert "name" in admin.fails("invalid_arguments", "admin.webhooks.create", channel=hook.channel, name=name).messages
    for icon in ({"icon_url": "ftp://x"}, {"icon_url": "https://x/" + "x" * 2000}, {"icon_emoji": "x" * 101}):
        assert next(iter(icon)) in admin.fails("invalid_arguments", "admin.webhooks.create", channel=hook.channel, name="x", **icon).messages
    admin.ok("admin.webhooks.create", channel=hook.channel, name="x" * 80, icon_emoji="x" * 100)
    direct = hook.ann.ok("channels.open", users=[admin.ok("auth.test")["user_id"]])["channel"]["id"]
    admin.fails("method_not_supported_for_channel_type", "admin.webhooks.create", channel=direct, name="x")
    hook.ann.ok("channels.archive", channel=hook.channel)
    admin.fails("is_archived", "admin.webhooks.create", channel=hook.channel, name="x")


def test_how_many(environment, hook):
    with environment.database() as database:
        database.execute("INSERT INTO webhooks (id, digest, workspace_id, user_id, channel_id, name) SELECT 'BX' || n || w.id, 'x' || n || w.id,"
                         " w.workspace_id, w.user_id, w.channel_id, 'x' FROM webhooks w, generate_series(1, %s) n WHERE w.id = %s",
                         [WEBHOOKS_MAX - 2, hook.made["id"]])
    admin = hook.workspace.admin
    admin.ok("admin.webhooks.create", channel=hook.channel, name="the last")
    admin.fails("too_many_webhooks", "admin.webhooks.create", channel=hook.channel, name="one more")
    assert len(admin.ok("admin.webhooks.list")["webhooks"]) == WEBHOOKS_MAX


def test_the_rate_is_its_own(hook):
    before = metric(hook.workspace.admin, "tidings_ratelimited_total", 'kind="webhook"')
    replies = [hook.post({"text": f"{n}"}) for n in range(BURST + 5)]
    refused = [r for r in replies if r.status_code == 429]
    assert [r.status_code for r in replies[:BURST]] == [200] * BURST and refused
    assert all(r.text == "ratelimited" and 1 <= int(r.headers["Retry-After"]) <= 2 for r in refused)
    assert metric(hook.workspace.admin, "tidings_ratelimited_total", 'kind="webhook"') - before == len(refused)
    other = Hook(hook.workspace)
    other.says(200, "ok", {"text": "not concerned"})
    wait_until(lambda: hook.post({"text": "later"}).status_code == 200, timeout=5)


def test_the_secret_is_in_no_log_or_metric(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("webhooks"), instances=1, settings={"TIDINGS_LOG_LEVEL": "debug"})
    for parts in running(environment):
        hook = Hook(parts.workspace())
        secret = hook.url.rsplit("/", 1)[1]
        for body in ('{"text":"x"}', "{", "x" * (3 << 20)):
            hook.post(body)
        requests.get(hook.url, timeout=60)
        hook.workspace.admin.ok("admin.webhooks.delete", webhook_id=hook.made["id"])
        hook.post({"text": "x"})
        metrics = requests.get(f"{hook.workspace.admin.url}/metrics", timeout=60).text
        written = "".join(path.read_text(errors="replace") for path in parts.directory.rglob("*.log"))
        assert "/services" in written and secret not in written and secret not in metrics


def test_slack_sdk(hook):
    from slack_sdk.webhook import WebhookClient
    client = WebhookClient(hook.url)
    answer = client.send(text="from Python", blocks=[{"type": "divider"}])
    assert (answer.status_code, answer.body) == (200, "ok") and hook.last()["text"] == "from Python"
    assert client.send(text="").body == "no_text"


def test_apprise(hook):
    import apprise
    from apprise.plugins.slack import NotifySlack
    path = urlsplit(hook.url).path.removeprefix("/services/")
    notify = apprise.Apprise.instantiate(f"slack://{path}/#elsewhere")
    assert isinstance(notify, NotifySlack)
    notify.webhook_url = hook.url.removesuffix("/" + path)
    assert notify.send(body="disk full", title="Oh")
    assert hook.last()["attachments"][0]["text"] == "disk full"
