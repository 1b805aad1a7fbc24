# SPDX-License-Identifier: Apache-2.0
"""The event app_mention: sent to an app in addition to each new message that mentions its bot, by Socket Mode and over HTTP."""

from types import SimpleNamespace

import pytest

from tests.support.client import Client
from tests.support.environment import Environment, running
from tests.support.events_url import EventsUrl
from tests.support.kept import kept, wait_kept
from tests.support.sockets import Socket
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder):
    """Two instances that may send to the servers of these tests, which are at local addresses."""
    settings = {"TIDINGS_EVENTS_API_PRIVATE": "true", "TIDINGS_EVENTS_API_RETRY_MS": "400"}
    yield from running(Environment(tmp_path_factory.mktemp("mention"), settings=settings, recorder=recorder))


def make_app(workspace, **more):
    ann, bot = workspace.user(), workspace.bot()
    made = workspace.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id, **more)
    return SimpleNamespace(id=made["app"]["id"], token=made["app_token"], bot=bot, ann=ann, channel=workspace.channel(ann, bot))


class Link:
    """An app socket that acks all events, except for texts that begin with "hold"."""

    def __init__(self, app, url=None):
        client = Client(url or app.ann.url, app.token, app.ann.recorder)
        self.socket = Socket(client.ok("apps.connections.open")["url"])
        self.socket.expect({"type": "hello"})
        self.acked = set()

    def payloads(self):
        envelopes = self.socket.matching({"type": "events_api"})
        for envelope in envelopes:
            held = envelope["payload"]["event"].get("text", "").startswith("hold")
            if envelope["envelope_id"] not in self.acked and not held:
                self.acked.add(envelope["envelope_id"])
                self.socket.send({"envelope_id": envelope["envelope_id"]})
        return [envelope["payload"] for envelope in envelopes]

    def close(self):
        self.socket.close()


class Address:
    """An app's events_url."""

    def __init__(self):
        self.server = EventsUrl()

    def payloads(self):
        return [request.json for request in self.server.events]

    def close(self):
        self.server.close()


@pytest.fixture(params=["socket mode", "http"])
def app(request, environment, workspace):
    """An app that records events from now on; `payloads()` returns them."""
    if request.param == "http":
        ear = Address()
        app = make_app(workspace, events_url=ear.server.url)
    else:
        app = make_app(workspace)
        ear = Link(app)
    app.payloads = ear.payloads
    wait_until(lambda: app.ann.post(app.channel, "anybody?") and ear.payloads(), interval=0.2)
    yield app
    ear.close()


def heard(app, kind, text):
    """The payload of that event, once received."""
    def look():
        return [p for p in app.payloads() if p["event"]["type"] == kind and p["event"].get("text") == text]
    return wait_until(look, interval=0.05, what=f"{kind} {text}")[0]


def mentions(app):
    """Their texts. A mention that was not acked in time, as on a busy machine, is repeated unchanged."""
    events = {p["event_id"]: p["event"] for p in app.payloads()}
    return [event["text"] for event in events.values() if event["type"] == "app_mention"]


def test_beside_its_message(app, workspace):
    text = f"<@{app.bot.id}> is it \"everything\" a river should be? 😀"
    said = app.ann.ok("chat.postMessage", channel=app.channel, text=text, client_msg_id="m")
    plain, mention = heard(app, "message", text), heard(app, "app_mention", text)
    event = {name: value for name, value in mention["event"].items() if name != "seq"}
    assert event == {"type": "app_mention", "user": app.ann.id, "text": text, "ts": said["ts"], "channel": app.channel,
                     "event_ts": said["ts"], "team": workspace.id, "client_msg_id": "m"}
    assert mention["event_id"] != plain["event_id"] and mention["event_id"].startswith("Ev")
    assert mention["event_time"] == plain["event_time"] and mention["authorizations"] == plain["authorizations"]
    assert (mention["type"], mention["api_app_id"]) == ("event_callback", app.id)


def test_which_messages_have_one(app, workspace):
    """New ones of others that name it, in text or blocks, also in threads; not where it is named otherwise."""
    ann, bot, channel, at = app.ann, app.bot, app.channel, f"<@{app.bot.id}>"
    other, section = workspace.bot(), [{"type": "section", "text": {"type": "mrkdwn", "text": at}}]
    ann.ok("channels.invite", channel=channel, users=other.id)
    root = ann.post(channel, f"one {at}")
    ann.post(channel, "two", blocks=section)
    reply = ann.post(channel, f"three <@{bot.id}|name>", thread_ts=root)
    other.post(channel, f"four {at} {at}", username="Someone")
    ann.post(channel, f"five @{bot.name}", link_names=True)
    ann.post(channel, f"six {at}", thread_ts=root, reply_broadcast=True)

    bot.post(channel, f"its own {at}")
    ann.post(channel, f"<@{other.id}> <!channel> {bot.id} <@{bot.id}X>")
    ann.ok("channels.setTopic", channel=channel, topic=f"ask {at}")
    ann.ok("chat.update", channel=channel, ts=ann.post(channel, "plain"), text=f"an edit {at}")
    ann.post(bot.id, f"in private {at}")
    ann.ok("chat.postMessage", channel=channel, text=f"one more {at}", client_msg_id="x")
    assert ann.ok("chat.postMessage", channel=channel, text=f"one more {at}", client_msg_id="x")["is_duplicate"] is True
    heard(app, "message", f"in private {at}")
    heard(app, "app_mention", f"one more {at}")
    expected = [f"one {at}", "two", f"three <@{bot.id}|name>", f"four {at} {at}", f"five {at}", f"six {at}", f"one more {at}"]
    wait_until(lambda: sorted(mentions(app)) == sorted(expected), what=f"{expected}, {mentions(app)}")
    threaded = heard(app, "app_mention", f"three <@{bot.id}|name>")["event"]
    assert (threaded["ts"], threaded["thread_ts"], threaded["parent_user_id"]) == (reply, root, ann.id)
    assert heard(app, "app_mention", "two")["event"]["blocks"] == section
    assert heard(app, "app_mention", f"four {at} {at}")["event"]["bot_id"] == other.bot_id


def test_each_app_hears_of_its_own(app, workspace):
    """Also for one message that mentions several apps; the other apps receive only the message."""
    second, third = make_app(workspace), make_app(workspace)
    app.ann.ok("channels.invite", channel=app.channel, users=[second.bot.id, third.bot.id])
    links = [Link(second), Link(third)]
    second.payloads, third.payloads = (link.payloads for link in links)
    both = f"<@{app.bot.id}> and <@{second.bot.id}>"
    app.ann.post(app.channel, both)
    app.ann.post(app.channel, "the end")
    for one in (app, second):
        heard(one, "app_mention", both)
        heard(one, "message", both)
    for one in (app, second, third):
        heard(one, "message", "the end")
    assert mentions(third) == []
    for link in links:
        link.close()


def test_what_is_not_acked_or_came_in_a_gap(environment, workspace):
    """An unacked mention is sent again separately, and waits for the next connection, on another instance too."""
    app = make_app(workspace)
    link = Link(app)
    wait_kept(environment, app.id, app.channel,
              [lambda url=url: app.ann.at(url).post(app.channel, "before") for url in environment.urls],
              lambda: link.payloads() and None)
    text = f"hold this, <@{app.bot.id}>"
    app.ann.post(app.channel, text)
    first = link.socket.expect(lambda f: f.get("type") == "events_api" and f["payload"]["event"]["type"] == "app_mention")
    link.close()
    app.ann.post(app.channel, f"<@{app.bot.id}> in the gap")
    wait_until(lambda: kept(environment, app.id) == 4, what="two messages and two mentions that wait")
    link = Link(app, environment.urls[1])
    app.payloads = link.payloads
    heard(app, "app_mention", f"<@{app.bot.id}> in the gap")
    again = heard(app, "app_mention", text)
    assert again["event_id"] == first["payload"]["event_id"]
    envelope, *_ = [e for e in link.socket.matching({"type": "events_api"}) if e["payload"] == again]
    assert envelope["envelope_id"] == first["envelope_id"] and envelope["retry_attempt"] > 0
    link.close()


def test_it_stays_within_apps(workspace):
    """Sockets of users, the bot's own too, get messages alone."""
    ann, bot = workspace.user(), workspace.bot()
    channel = workspace.channel(ann, bot)
    with bot.socket() as socket, bot.stream() as stream:
        ann.post(channel, f"<@{bot.id}> hello")
        ann.post(channel, "the end")
        for one in (socket, stream):
            one.expect({"type": "message", "text": "the end"})
            assert not one.matching({"type": "app_mention"})
