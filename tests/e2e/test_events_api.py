# SPDX-License-Identifier: Apache-2.0
"""The Events API over HTTP: which events are sent to an app's events_url, when, and how often."""

import json
import re
import signal
import threading
from types import SimpleNamespace

import pytest
from slack_sdk.signature import SignatureVerifier

from tests.support.environment import Environment, running
from tests.support.events_url import EventsUrl, plain
from tests.support.wait import wait_until

QUEUE_MAX = 50
RETRY_MS = 400
SETTINGS = {
    "TIDINGS_EVENTS_API_PRIVATE": "true",
    "TIDINGS_EVENTS_API_RETRY_MS": str(RETRY_MS),
    "TIDINGS_EVENTS_API_QUEUE_MAX": str(QUEUE_MAX),
}


def make(tmp_path_factory, recorder, instances=2, **more):
    settings = {**SETTINGS, **more}
    yield from running(Environment(tmp_path_factory.mktemp("push"), instances, settings=settings, recorder=recorder))


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder):
    """Two instances that may send to the servers of these tests, which are at local addresses."""
    yield from make(tmp_path_factory, recorder)


@pytest.fixture
def careful_environment(tmp_path_factory, recorder):
    """Two instances with the default: no private addresses."""
    yield from make(tmp_path_factory, recorder, TIDINGS_EVENTS_API_PRIVATE="false")


@pytest.fixture
def server():
    server = EventsUrl()
    yield server
    server.close()


def make_app(workspace, url):
    ann, bot = workspace.user(), workspace.bot()
    made = workspace.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id, events_url=url)
    return SimpleNamespace(id=made["app"]["id"], secret=made["app"]["signing_secret"], token=made["app_token"], bot=bot,
                           ann=ann, admin=workspace.admin, channel=workspace.channel(ann, bot))


def challenged(workspace, server):
    """An app whose URL got a challenge."""
    app = make_app(workspace, server.url)
    wait_until(lambda: server.challenges, what="a challenge")
    return app


def rows(environment, statement):
    """The number of rows found or changed."""
    with environment.database() as database:
        return database.execute(statement).rowcount


def listening(environment, workspace, server):
    """An app whose URL is verified. Earlier events (perhaps its bot's join) are complete and discarded."""
    app = challenged(workspace, server)
    app.ann.post(app.channel, "the beginning")
    arrived(server, "the beginning")
    wait_until(lambda: rows(environment, f"SELECT FROM app_events WHERE app_id = '{app.id}' AND frame IS NOT NULL") == 0)
    server.requests = server.challenges
    return app


@pytest.fixture
def app(environment, workspace, server):
    return listening(environment, workspace, server)


def is_signed(app, request):
    return SignatureVerifier(app.secret).is_valid_request(request.body, request.headers)


def arrived(server, text, times=1):
    return wait_until(lambda: len(server.tries(text)) >= times and server.tries(text), what=f"{times} times {text}")


def failing(count, *answer):
    """Answers the first `count` tries of each event with `answer`, and takes the next."""
    seen = {}

    def choose(request):
        if request.json["type"] != "event_callback":
            return plain(request)
        event_id = request.json["event_id"]
        seen[event_id] = seen.get(event_id, 0) + 1
        return plain(request) if seen[event_id] > count else answer[0]

    return choose


def counters(environment, name):
    """The sum of a counter over the instances."""
    pages = [environment.client(url=url).page("/metrics").text for url in environment.urls]
    return sum(int(n) for page in pages for n in re.findall(rf"^{re.escape(name)} (\d+)$", page, re.MULTILINE))


def test_the_challenge(app, server):
    request = server.challenges[0]
    assert is_signed(app, request)
    assert set(request.json) == {"type", "token", "challenge"}
    assert request.headers["Content-Type"] == "application/json"
    app.ann.post(app.channel, "x")
    arrived(server, "x")
    assert len(server.challenges) == 1


def test_an_event(app, server, workspace):
    said = app.ann.ok("chat.postMessage", channel=app.channel, text="hello, Jürgen 😀")
    request = arrived(server, "hello, Jürgen 😀")[0]
    assert is_signed(app, request)
    assert not SignatureVerifier("another").is_valid_request(request.body, request.headers)
    assert request.path == "/slack/events" and request.headers["Content-Type"] == "application/json"
    assert not [name for name in request.headers if name.startswith("X-Slack-Retry")]
    payload = request.json
    assert (payload["team_id"], payload["api_app_id"]) == (workspace.id, app.id)
    assert payload["event_id"].startswith("Ev") and isinstance(payload["event_time"], int)
    assert payload["authorizations"] == [{"enterprise_id": None, "team_id": workspace.id, "user_id": app.bot.id,
                                          "is_bot": True, "is_enterprise_install": False}]
    inner = payload["event"]
    assert (inner["type"], inner["user"], inner["ts"]) == ("message", app.ann.id, said["ts"])
    assert inner["channel_type"] == "channel" and inner["event_ts"]


def test_only_channels_of_its_bot_and_only_events(app, server, workspace):
    elsewhere = workspace.channel(app.ann)
    app.ann.post(elsewhere, "not for the app")
    ts = app.ann.post(app.channel, "for the app")
    app.bot.ok("channels.mark", channel=app.channel, ts=ts)
    app.ann.ok("chat.update", channel=app.channel, ts=ts, text="edited")
    # Who is in a channel is looked up when an event is brought on: what is on its way as the bot leaves does not come.
    wait_until(lambda: [r for r in server.events if r.json["event"].get("subtype") == "message_changed"], what="the edit")
    app.ann.ok("channels.kick", channel=app.channel, user=app.bot.id)
    app.ann.post(app.channel, "after it left")
    app.ann.ok("channels.invite", channel=app.channel, users=[app.bot.id])
    app.ann.post(app.channel, "the end")
    arrived(server, "the end")

    def kinds():
        return {(r.json["event"]["type"], r.json["event"].get("subtype")) for r in server.events}

    # Several go at once, each on a connection of its own: the last may be there first.
    wait_until(lambda: {("message", None), ("message", "message_changed"), ("member_joined_channel", None)} <= kinds())
    assert {kind for kind, _ in kinds()} <= {"message", "member_joined_channel", "member_left_channel"}
    assert "not for the app" not in server.texts() and "after it left" not in server.texts()


def test_retries(app, server, environment):
    before = counters(environment, 'tidings_events_api_dropped_total{reason="tries"}')
    server.answer = failing(9, (500, {}, ""))
    app.ann.post(app.channel, "never taken")
    tries = arrived(server, "never taken", 4)
    wait_until(lambda: counters(environment, 'tidings_events_api_dropped_total{reason="tries"}') > before)
    assert [r.headers.get("X-Slack-Retry-Num") for r in tries] == [None, "1", "2", "3"]
    assert [r.headers.get("X-Slack-Retry-Reason") for r in tries] == [None] + ["http_error"] * 3
    assert len({r.json["event_id"] for r in tries}) == 1 and all(is_signed(app, r) for r in tries)
    app.ann.post(app.channel, "another")
    arrived(server, "another", 4)
    assert len(server.tries("never taken")) == 4


def test_a_retry_that_is_taken_is_the_last(app, server):
    server.answer = failing(2, (503, {}, ""))
    app.ann.post(app.channel, "x")
    arrived(server, "x", 3)
    server.answer = failing(9, (500, {}, ""))
    app.ann.post(app.channel, "y")
    arrived(server, "y", 4)
    assert len(server.tries("x")) == 3


def test_a_slow_answer(app, server):
    server.answer = failing(1, None)
    app.ann.post(app.channel, "x")
    assert arrived(server, "x", 2)[1].headers["X-Slack-Retry-Reason"] == "http_timeout"


def test_no_retry_on_request(app, server):
    server.answer = failing(9, (500, {"X-Slack-No-Retry": "1"}, ""))
    app.ann.post(app.channel, "x")
    arrived(server, "x")
    server.answer = failing(9, (500, {}, ""))
    app.ann.post(app.channel, "y")
    arrived(server, "y", 4)
    assert len(server.tries("x")) == 1


def test_redirects_are_not_followed(app, server):
    server.answer = failing(1, (307, {"Location": "/elsewhere"}, ""))
    app.ann.post(app.channel, "x")
    assert arrived(server, "x", 2)[1].headers["X-Slack-Retry-Reason"] == "http_error"
    assert {r.path for r in server.requests} == {"/slack/events"}


def test_a_long_answer_is_not_read_to_its_end(app, server, environment):
    before = counters(environment, "tidings_events_api_taken_total")
    server.answer = lambda request: (200, {"Content-Length": str(1 << 40)}, "x" * 100_000)
    app.ann.post(app.channel, "x")
    wait_until(lambda: counters(environment, "tidings_events_api_taken_total") > before)
    assert len(server.tries("x")) == 1


def test_a_server_that_is_away(app, server):
    away = EventsUrl()
    away.close()
    other = make_app_at(app, away.url)
    app.ann.post(app.channel, "x")
    arrived(server, "x")
    app.ann.post(app.channel, "y")
    arrived(server, "y")
    assert other.id and not away.requests


def test_an_app_that_stands_still_holds_up_no_other(tmp_path_factory, recorder, server):
    slow = EventsUrl(lambda request: plain(request) if request.json["type"] == "url_verification" else None)
    try:
        for environment in make(tmp_path_factory, recorder, TIDINGS_EVENTS_API_PARALLEL="8"):
            app = challenged(environment.workspace(), slow)
            make_app_at(app, server.url)
            wait_until(lambda: server.challenges)
            for i in range(QUEUE_MAX // 2):
                app.ann.post(app.channel, f"m{i}")
            wait_until(lambda: len(set(server.texts()) - {None}) == QUEUE_MAX // 2, what="events of the one that answers")
            assert slow.events
    finally:
        slow.close()


class Gates:
    """Hold the requests of two apps, and let one after the other go on."""

    def __init__(self):
        self.turns, self.lock = threading.Semaphore(0), threading.Lock()
        self.held, self.most, self.most_of_both = [0, 0], [0, 0], 0

    def of(self, app):
        def answer(request):
            if request.json["type"] == "event_callback":
                self.enter(app)
                self.turns.acquire(timeout=60)
                with self.lock:
                    self.held[app] -= 1
            return plain(request)
        return answer

    def enter(self, app):
        with self.lock:
            self.held[app] += 1
            self.most[app] = max(self.most[app], self.held[app])
            self.most_of_both = max(self.most_of_both, sum(self.held))


@pytest.mark.parametrize("parallel, most, most_of_both", [(3, 3, 3), (20, 8, 16)])
def test_so_many_requests_at_once(tmp_path_factory, recorder, parallel, most, most_of_both):
    """Of all apps together, and of one."""
    gates = Gates()
    servers = [EventsUrl(gates.of(app)) for app in range(2)]
    texts = {f"m{i}" for i in range(10)}
    try:
        for environment in make(tmp_path_factory, recorder, instances=1, TIDINGS_EVENTS_API_PARALLEL=str(parallel),
                                TIDINGS_EVENTS_API_TIMEOUT_MS="60000"):
            app = challenged(environment.workspace(), servers[0])
            make_app_at(app, servers[1].url)
            wait_until(lambda: servers[1].challenges)
            for text in sorted(texts):
                app.ann.post(app.channel, text)
            for _ in range(2):
                wait_until(lambda: sum(gates.held) == most_of_both, what="as many as may be")
                gates.turns.release()
            gates.turns.release(100)
            wait_until(lambda: all(texts <= set(server.texts()) for server in servers), what="all events")
        assert max(gates.most) <= most and gates.most_of_both == most_of_both
    finally:
        gates.turns.release(100)
        for server in servers:
            server.close()


def make_app_at(app, url):
    """A second app, in the channel of the first."""
    admin = app.admin
    bot = admin.ok("admin.users.create", name=f"{app.bot.name}-2", is_bot=True)["user"]["id"]
    made = admin.ok("admin.apps.create", name="another", bot_user_id=bot, events_url=url)
    app.ann.ok("channels.invite", channel=app.channel, users=[bot])
    return SimpleNamespace(id=made["app"]["id"], secret=made["app"]["signing_secret"])


def test_each_once_with_two_instances(app, server, environment):
    writers = [app.ann.at(url) for url in environment.urls]
    for i in range(40):
        writers[i % 2].post(app.channel, f"m{i}")
    wait_until(lambda: len(set(server.texts()) - {None}) == 40, what="40 events")
    app.ann.post(app.channel, "the end")
    arrived(server, "the end")
    # On a busy machine one may be answered so late that it comes again.
    texts = [r.json["event"]["text"] for r in server.events if "text" in r.json["event"] and "X-Slack-Retry-Num" not in r.headers]
    assert sorted(texts) == sorted({*texts}) and len(texts) == 41


@pytest.mark.parametrize("end", ["deleted", "its bot inactive"])
def test_an_app_that_ended_hears_no_more(app, server, workspace, end):
    server.answer = failing(9, (500, {}, ""))
    app.ann.post(app.channel, "first")
    arrived(server, "first", 2)
    if end == "deleted":
        workspace.admin.ok("admin.apps.delete", app_id=app.id)
    else:
        workspace.admin.ok("admin.users.setActive", user_id=app.bot.id, active=False)
    tries = len(server.tries("first"))
    witness = EventsUrl()
    try:
        make_app_at(app, witness.url)
        wait_until(lambda: witness.challenges)
        app.ann.post(app.channel, "second")
        arrived(witness, "second")
    finally:
        witness.close()
    assert len(server.tries("first")) <= tries + 1 and not server.tries("second")  # one was perhaps on its way


def test_nothing_before_the_challenge_is_answered(workspace, server, environment):
    before = counters(environment, "tidings_events_api_unverified_total")
    server.answer = lambda request: (200, {}, json.dumps({"challenge": "another"}))
    app = challenged(workspace, server)
    wait_until(lambda: counters(environment, "tidings_events_api_unverified_total") > before)
    app.ann.post(app.channel, "early")
    wait_until(lambda: len(server.challenges) > 1)
    assert not server.events
    server.answer = lambda request: (200, {}, request.json.get("challenge", ""))  # as plain text
    arrived(server, "early")
    assert all(is_signed(app, request) for request in server.requests)
    assert len({r.json["challenge"] for r in server.challenges}) == len(server.challenges)


def test_what_waits_is_bounded(workspace, server, environment):
    full = 'tidings_events_api_dropped_total{reason="full"}'
    before = counters(environment, full)
    server.answer = lambda request: (404, {}, "")
    app = challenged(workspace, server)
    for i in range(QUEUE_MAX + 10):
        app.ann.post(app.channel, f"m{i}")
    wait_until(lambda: counters(environment, full) >= before + 10)
    server.answer = plain
    wait_until(lambda: len({request.json["event_id"] for request in server.events}) == QUEUE_MAX, what="what was kept")


@pytest.mark.large
def test_large_messages_that_waited_for_redis(tmp_path_factory, recorder, server):
    for environment in make(tmp_path_factory, recorder, instances=1, TIDINGS_EVENTS_API_QUEUE_MAX="1000",
                            TIDINGS_RATE_BYTES="0"):
        app = listening(environment, environment.workspace(), server)
        sent = {f"m{i}" for i in range(80)}
        environment.redis.kill(signal.SIGSTOP)
        try:
            for text in sorted(sent):
                app.ann.post(app.channel, text, attachments=[{"text": "x" * 1_000_000}])
        finally:
            environment.redis.kill(signal.SIGCONT)
        wait_until(lambda: set(server.texts()) == sent, 60, what="all of them")


def test_what_waits_for_all_apps_is_bounded(tmp_path_factory, recorder, server):
    server.answer = lambda request: (404, {}, "")
    for environment in make(tmp_path_factory, recorder, TIDINGS_EVENTS_API_TOTAL_MAX="10"):
        workspace = environment.workspace()
        apps = [challenged(workspace, server) for _ in range(2)]
        for app in apps * 8:
            app.ann.post(app.channel)
        wait_until(lambda: counters(environment, 'tidings_events_api_dropped_total{reason="full"}') >= 6, what="events dropped")
        assert rows(environment, "SELECT FROM app_events WHERE frame IS NOT NULL") == 10


def test_private_addresses_are_refused(careful_environment, server):
    workspace = careful_environment.workspace()
    for host in ("127.0.0.1", "localhost", "[::1]", "0x7f.1", "[::ffff:127.0.0.1]"):
        make_app(workspace, f"http://{host}:{server.port}/")
    wait_until(lambda: counters(careful_environment, "tidings_events_api_unverified_total") >= 5)
    assert counters(careful_environment, "tidings_events_api_addresses_refused_total") >= 4
    assert not server.requests


def test_a_proxy_of_the_environment_is_not_used(tmp_path_factory, recorder, server, monkeypatch):
    """A proxy would connect to addresses that were not checked."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for environment in make(tmp_path_factory, recorder):
        listening(environment, environment.workspace(), server)


def test_kept_over_a_crash(tmp_path_factory, recorder, server):
    """All instances are killed while an event waits for its third attempt, which is not due before they run again."""
    for environment in make(tmp_path_factory, recorder, TIDINGS_EVENTS_API_RETRY_MS="600000"):
        app = listening(environment, environment.workspace(), server)
        server.answer = failing(2, (500, {}, ""))
        app.ann.post(app.channel, "x")
        arrived(server, "x", 2)
        wait_until(lambda: rows(environment, f"SELECT FROM app_events WHERE {WAITS}") == 1, what="an event that waits")
        for instance in environment.instances:
            instance.kill()
        for instance in environment.instances:
            instance.start()
        assert len(server.tries("x")) == 2
        assert rows(environment, f"UPDATE app_events SET due_at = now() WHERE {WAITS}") == 1
        assert arrived(server, "x", 3)[2].headers["X-Slack-Retry-Num"] == "2"


# The third try is to come. One that is under way is due again after 13 s, if its instance does not live to tell of it.
WAITS = "frame IS NOT NULL AND tries = 2 AND due_at > now() + interval '15 s'"


def test_no_socket_mode_beside_it(app, environment):
    environment.client(app.token).fails("not_allowed_token_type", "apps.connections.open")


@pytest.mark.parametrize("url", [
    "ftp://example.com/", "file:///etc/passwd", "example.com", "http:/x", "https://", "http://a b/", "http://a/\r\nX: y",
    "http://:80/", "http://a:0/", "http://a:99999/", "http://a:/", "http://[::1/", "http://[::1]x/", "http://me@/",
    "http://?x", "http://h\u00e9.example/", "http://a/" + "x" * 2000,
])
def test_bad_urls(workspace, url):
    bot = workspace.bot()
    reply = workspace.admin.fails("invalid_arguments", "admin.apps.create", name="x", bot_user_id=bot.id, events_url=url)
    assert "events_url" in reply.messages
