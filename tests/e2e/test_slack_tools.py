# SPDX-License-Identifier: Apache-2.0
"""What stopped real Slack tools, each by the request of the tool that met it. The numbers are those of docs/slack-tools.md."""
import re
import struct

import pytest
import requests


BLOCKS = [{"type": "header", "text": {"type": "plain_text", "text": "Deploy"}},
          {"type": "section", "text": {"type": "mrkdwn", "text": "*api* is out"}, "fields": [{"type": "mrkdwn", "text": "by <@U1>"}]},
          {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Undo"}, "action_id": "undo"}]}]


@pytest.fixture
def room(workspace):
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def test_t1_scopes_in_headers(environment, workspace):
    """errbot splits the header of its first call, and crashes without one."""
    bot, admin = workspace.bot(), workspace.admin
    granted = bot.ok("auth.test").headers["X-OAuth-Scopes"].split(",")
    assert {"chat:write", "channels:history", "users:read"} <= set(granted) and not {"admin", "users:read.email"} & set(granted)
    assert {"admin", "users:read.email"} <= set(admin.ok("auth.test").headers["X-OAuth-Scopes"].split(","))
    for method, accepted in (("auth.test", ""), ("conversations.list", "channels:read"), ("admin.users.list", "admin")):
        assert bot.call(method).headers["X-Accepted-OAuth-Scopes"] == accepted
    token = admin.ok("admin.tokens.create", user_id=bot.id, scopes="chat:write")["token"]
    refused = environment.client(token).fails("missing_scope", "users.list").headers
    assert (refused["X-OAuth-Scopes"], refused["X-Accepted-OAuth-Scopes"]) == ("chat:write", "users:read")
    app = admin.ok("admin.apps.create", name="x", bot_user_id=bot.id)["app_token"]
    assert environment.client(app).ok("auth.test").headers["X-OAuth-Scopes"] == "connections:write"


def test_t1_no_headers_without_a_token(environment):
    for reply in (environment.client().call("auth.test"), environment.client("xoxp-none").call("auth.test"),
                  environment.client(environment.operator_token).call("auth.test")):
        assert not {"X-OAuth-Scopes", "X-Accepted-OAuth-Scopes"} & set(reply.headers)


def test_t2_a_message_without_an_id(room):
    """slackclient 1.x sends no id, and null for what it has not; python-rtmbot and others are built on it."""
    ann, bob, channel = room
    with ann.socket() as socket, bob.socket() as other:
        socket.send({"type": "message", "channel": channel, "text": "by rtm", "attachments": None, "thread_ts": None})
        answer = socket.expect({"ok": True})
        assert "reply_to" not in answer and answer["text"] == "by rtm"
        assert other.expect({"type": "message", "channel": channel})["ts"] == answer["ts"]
        socket.send({"type": "message", "channel": "C00000000", "text": "x", "id": None})
        refused = socket.expect({"ok": False})
        assert "reply_to" not in refused and refused["error"]["msg"] == "channel_not_found"
        socket.send({"type": "message", "channel": channel, "text": "x", "id": {}})
        assert "id: must be" in socket.expect({"type": "error"})["error"]["msg"]
    assert [message["text"] for message in bob.history(channel)] == ["by rtm"]


def test_t3_tokens_are_letters_and_digits(workspace):
    """apprise takes a token for none if it has a `_`."""
    ann, bot = workspace.user(), workspace.bot()
    tokens = [workspace.admin.ok("admin.tokens.create", user_id=user.id)["token"] for user in (ann, bot) for _ in range(20)]
    tokens.append(workspace.admin.ok("admin.apps.create", name="x", bot_user_id=bot.id)["app_token"])
    assert all(re.fullmatch(r"(xoxp|xoxb|xapp)-[A-Za-z0-9]{43}", token) for token in tokens)
    assert len(set(tokens)) == len(tokens)


@pytest.mark.parametrize("method, most", [("conversations.members", 1000), ("conversations.history", 999), ("conversations.replies", 1000),
                                          ("channels.events", 1000)])
def test_t4_limits_above_the_most(room, method, most):
    """wee-slack and irslackd ask for 5000 members, exporters for 1000 messages."""
    ann, _, channel = room
    args = {"channel": channel, "ts": ann.post(channel), "after_seq": 0}
    whole = ann.ok(method, **args)
    for limit in (0, "0", most, most + 1, 5000, 10**30, 3.0):
        assert ann.ok(method, **args, limit=limit) == whole, limit
    for limit in (-1, "many", 2.5, "01", " 1"):
        assert "limit: must be" in ann.fails("invalid_limit", method, **args, limit=limit).messages


def test_t4_lists(room):
    ann = room[0]
    for method, args in (("conversations.list", {}), ("users.list", {}), ("users.conversations", {}), ("threads.list", {}),
                         ("unread.sync", {})):
        for limit in (0, 1001, 10**20):
            ann.ok(method, limit=limit, **args)
    position = ann.ok("unread.sync")["position"]
    ann.ok("events.sync", since=position, limit=100000)


def test_t5_history_of_a_public_channel_without_joining(room, workspace):
    """slackdump and slack_cleaner2 read what their user has not joined. A bot does not."""
    ann, _, channel = room
    root = ann.post(channel, "root")
    ann.post(channel, "reply", thread_ts=root)
    reader, bot = workspace.user(), workspace.bot()
    assert [m["text"] for m in reader.history(channel, unreads=True)] == ["root"]
    assert [m["text"] for m in reader.ok("conversations.replies", channel=channel, ts=root)["messages"]] == ["root", "reply"]
    for method in ("conversations.history", "conversations.replies"):
        bot.fails("not_in_channel", method, channel=channel, ts=root)
    reader.fails("not_in_channel", "channels.events", channel=channel, after_seq=0)
    hidden = workspace.channel(ann, private=True)
    reader.fails("channel_not_found", "conversations.history", channel=hidden)


@pytest.mark.parametrize("count, created", [(1, "im_created"), (2, "group_joined")])
def test_t6_a_direct_conversation_has_no_member_events(environment, workspace, count, created):
    """irslackd looks a member's channel up among the channels, and dies of one that is a DM."""
    ann, *others = workspace.users(1 + count)
    position = ann.ok("unread.sync")["position"]
    with ann.socket() as socket, ann.socket(native=True) as native:
        channel = ann.ok("conversations.open", users=[other.id for other in others])["channel"]["id"]
        socket.expect({"type": created, "channel": {"id": channel}})
        socket.expect({"type": "im_open" if count == 1 else "group_open", "channel": channel})
        others[0].post(channel, "hello")
        socket.expect({"type": "message", "channel": channel})
        assert not socket.matching({"type": "member_joined_channel"})
        native.expect({"type": "message", "channel": channel})
        assert len(native.matching({"type": "member_joined_channel"})) == 1 + count, "every seq is a frame there"
    with ann.socket(since=position) as later:
        later.expect({"type": "message", "channel": channel})
        assert not later.matching({"type": "member_joined_channel"})


def test_t7_messages_of_bots(environment, room, workspace):
    """LlamaIndex's reader and slackdump show who wrote by `bot_profile`, and nothing of blocks without a text."""
    ann, _, channel = room
    bot = workspace.user(is_bot=True, real_name="Deploy \u201cbot\u201d")
    ann.ok("conversations.invite", channel=channel, users=[bot.id])
    app = workspace.admin.ok("admin.apps.create", name="deploy", bot_user_id=bot.id)["app"]["id"]
    again = environment.client(workspace.admin.ok("admin.tokens.create", user_id=bot.id)["token"])
    with ann.socket() as socket:
        posted = again.ok("chat.postMessage", channel=channel, blocks=BLOCKS)["message"]
        read = ann.history(channel)[0]
        frame = socket.expect({"type": "message", "ts": posted["ts"]})
    profile = posted["bot_profile"]
    assert profile.pop("updated") > 1_700_000_000
    assert profile == {"id": posted["bot_id"], "app_id": app, "user_id": bot.id, "name": "Deploy \u201cbot\u201d", "icons": {},
                       "deleted": False, "team_id": workspace.id}
    for message in (posted, read, frame):
        assert (message["app_id"], message["bot_profile"]["name"]) == (app, "Deploy \u201cbot\u201d")
        assert message["text"] == "Deploy\n*api* is out by <@U1>"


def test_t7_a_bot_without_an_app(room, workspace):
    ann, _, channel = room
    bot = workspace.bot()
    ann.ok("conversations.invite", channel=channel, users=[bot.id])
    message = bot.ok("chat.postMessage", channel=channel, text="x")["message"]
    assert re.fullmatch("A[A-Z0-9]+", message["app_id"]) and message["bot_profile"]["app_id"] == message["app_id"]
    assert "bot_profile" not in ann.ok("chat.postMessage", channel=channel, text="x")["message"]


@pytest.mark.parametrize("extra, text", [
    ({"blocks": [{"type": "divider"}]}, ""),
    ({"blocks": [{"type": "divider"}], "attachments": [{"fallback": "f"}]}, ""),
    ({"blocks": [{"type": "image", "image_url": "https://x.example/a.png", "alt_text": "a cat"}]}, "a cat"),
    ({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "\u00e9" * 2000}}]}, "\u00e9" * 1500),
    ({"blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
        {"type": "text", "text": "see "}, {"type": "link", "url": "https://x.example"}, {"type": "emoji", "name": "tada"}]}]}]},
     "see https://x.example:tada:"),
])
def test_t7_the_text_of_blocks(room, extra, text):
    ann, _, channel = room
    posted = ann.ok("chat.postMessage", channel=channel, **extra)
    assert posted["message"]["text"] == text
    ann.ok("chat.update", channel=channel, ts=posted["ts"], blocks=[{"type": "markdown", "text": "now *this*"}])
    assert ann.history(channel)[0]["text"] == "now *this*"


def test_t7_a_retry_is_recognised(room):
    ann, _, channel = room
    first = ann.ok("chat.postMessage", channel=channel, blocks=BLOCKS, client_msg_id="a")
    assert ann.ok("chat.postMessage", channel=channel, blocks=BLOCKS, client_msg_id="a")["ts"] == first["ts"]
    ann.fails("idempotency_key_reused", "chat.postMessage", channel=channel, blocks=BLOCKS[:1], client_msg_id="a")


PICTURES = [f"image_{size}" for size in (24, 32, 48, 72, 192, 512)]


def test_t8_profiles(workspace):
    """matterbridge takes the avatar from `image_192`, an MCP server splits `profile.title`."""
    ann = workspace.user("ann", real_name="Ann Lee Young", email="ann@example.org")
    profile = workspace.bot().ok("users.info", user=ann.id)["user"]["profile"]
    assert {"title", "phone", "skype", "display_name", "status_text", "first_name", "last_name", *PICTURES} <= set(profile)
    assert (profile["first_name"], profile["last_name"], "email" in profile) == ("Ann", "Lee Young", False)
    assert profile["image_24"] != profile["image_512"]
    assert ann.ok("users.info", user=ann.id)["user"]["profile"]["email"] == "ann@example.org"


def test_t8_pictures_are_served(workspace):
    ann, bob = workspace.users(2)
    shown = {}
    for user in (ann, bob):
        profile = ann.ok("users.info", user=user.id)["user"]["profile"]
        for picture in PICTURES:
            reply = requests.get(profile[picture], timeout=30)
            size = int(picture.split("_")[1])
            assert reply.status_code == 200 and reply.headers["Content-Type"] == "image/png"
            assert reply.content[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", reply.content[16:24]) == (size, size)
            assert reply.headers["Cache-Control"] == "public, max-age=86400" and reply.headers["X-Content-Type-Options"] == "nosniff"
        shown[user.id] = reply.content
    assert shown[ann.id] != shown[bob.id]
    base = profile["image_24"].split("/avatars/")[0]
    for path in ("25/U1234567890.png", "512/U1234567890.svg", "24/u1.png", "24/..%2F..%2Fx.png", "24/", "", "024/U123.png",
                 f"24/U{'1' * 30}.png", "24/U123.png/"):
        assert requests.get(f"{base}/avatars/{path}", timeout=30).status_code == 404, path


def test_t9_markdown_text(room):
    """Agents post by it; Slack's clients get blocks."""
    ann, bob, channel = room
    text = "# Done\n**all** of [it](https://x.example)"
    posted = ann.ok("chat.postMessage", channel=channel, markdown_text=text, client_msg_id="a")
    block = {"type": "markdown", "text": text, "block_id": "markdown"}
    assert posted["message"]["blocks"] == [block] and posted["message"]["text"] == text
    assert bob.history(channel)[0]["blocks"] == [block]
    assert ann.ok("chat.postMessage", channel=channel, markdown_text=text, client_msg_id="a")["ts"] == posted["ts"]
    ann.ok("chat.update", channel=channel, ts=posted["ts"], markdown_text="*other*")
    assert bob.history(channel)[0]["blocks"] == [{**block, "text": "*other*"}]
    ann.ok("chat.postMessage", channel=channel, markdown_text="x" * 12000)
    ann.fails("msg_too_long", "chat.postMessage", channel=channel, markdown_text="x" * 12001)


def test_t10_a_user_by_name(workspace):
    """Old configurations of Alertmanager and Grafana name a person."""
    ann, bob = workspace.user("ann"), workspace.user("Bob.Lee")
    workspace.user("gone").ok("auth.test")
    reply = ann.ok("chat.postMessage", channel="@Bob.Lee", text="hello")
    assert bob.history(reply["channel"])[0]["text"] == "hello"
    assert ann.ok("chat.postMessage", channel="@bob.lee", text="again")["channel"] == reply["channel"]
    for name in ("@nobody", "@", "@@ann", "Bob.Lee"):
        ann.fails("channel_not_found", "chat.postMessage", channel=name, text="x")



@pytest.mark.parametrize("secret, error", [("s" * 15, True), ("s" * 16, False), ("Ab1-_" * 12 + "xyz", False), ("s" * 64, True),
                                           ("s" * 15 + " ", True), ("s" * 15 + "\u00e9", True)])
def test_t12_the_signing_secret_is_the_callers(workspace, secret, error):
    """Who starts the bot before its app exists knows the secret by then."""
    args = {"name": "x", "bot_user_id": workspace.bot().id, "signing_secret": secret}
    if error:
        assert "signing_secret: must be" in workspace.admin.fails("invalid_arguments", "admin.apps.create", **args).messages
    else:
        assert workspace.admin.ok("admin.apps.create", **args)["app"]["signing_secret"] == secret


def test_t13_the_url_of_auth_test_leads_back(workspace):
    """An MCP server calls the API at the url that auth.test returns."""
    ann = workspace.user()
    url = ann.ok("auth.test")["url"]
    reply = requests.post(f"{url}api/auth.test", headers={"Authorization": f"Bearer {ann.token}"}, timeout=30).json()
    assert reply["ok"] and reply["url"] == url and reply["user_id"] == ann.id
