# SPDX-License-Identifier: Apache-2.0
"""Socket Mode: the connections of an app, and the envelopes that they get."""

import re
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest

from tests.support.client import Client
from tests.support.kept import kept, wait_kept
from tests.support.metrics import metric
from tests.support.sockets import Socket
from tests.support.wait import SOON_S, wait_until

EVENT = {"type": "events_api"}


@pytest.fixture
def app(workspace):
    """An app with its bot, one who talks to it, and a channel of both."""
    ann, bot = workspace.user(), workspace.bot()
    made = workspace.admin.ok("admin.apps.create", name="an app", bot_user_id=bot.id)
    return SimpleNamespace(id=made["app"]["id"], token=made["app_token"], bot=bot, ann=ann,
                           channel=workspace.channel(ann, bot))


@pytest.fixture
def links(app, workspace):
    """Opens connections of the app and closes them after the test."""
    opened = []

    def open_link(url=None):
        client = Client(url or workspace.urls[0], app.token, workspace.recorder)
        opened.append(Socket(client.ok("apps.connections.open")["url"]))
        opened[-1].expect({"type": "hello"})
        return opened[-1]

    yield open_link
    for socket in opened:
        socket.close()


def event(socket, text, **more):
    """The envelope with the message `text`."""
    return socket.expect(lambda f: f.get("type") == "events_api" and f["payload"]["event"].get("text") == text and
                         all(f[name] == value for name, value in more.items()))


def ack(socket, envelope, **payload):
    socket.send({"envelope_id": envelope["envelope_id"], **payload})


def texts(socket):
    return [f["payload"]["event"].get("text") for f in socket.matching(EVENT)]


def test_the_url(app, workspace):
    client = Client(workspace.urls[0], app.token, workspace.recorder)
    reply = client.ok("apps.connections.open")
    assert set(reply) == {"ok", "url"}
    assert re.fullmatch(r"ws://[^/]+/link/[A-Za-z0-9_-]+", reply["url"])
    client.close()


def test_only_app_tokens(app):
    for member in (app.ann, app.bot):
        member.fails("not_allowed_token_type", "apps.connections.open")
    Client(app.ann.url, app.token, app.ann.recorder).fails("not_allowed_token_type", "rtm.connect")


def test_tickets_are_for_their_own_kind(app, workspace):
    client = Client(workspace.urls[0], app.token, workspace.recorder)
    link, rtm = client.ok("apps.connections.open")["url"], app.ann.ok("rtm.connect")["url"]
    for wrong in (link.replace("/link/", "/rtm/"), rtm.replace("/rtm/", "/link/")):
        with Socket(wrong) as socket:
            assert socket.wait_closed()[0] == 1008
            assert not socket.matching({"type": "hello"})


def test_hello(environment, app, links):
    first = links()
    hello = first.frames[0]
    assert hello["type"] == "hello" and hello["num_connections"] == 1
    assert hello["connection_info"] == {"app_id": app.id}
    info = hello["debug_info"]
    assert info["host"] and isinstance(info["build_number"], int) and info["approximate_connection_time"] == 18000
    assert links(environment.urls[1]).frames[0]["num_connections"] == 2


def test_an_envelope(app, links, workspace):
    link = links()
    said = app.ann.ok("chat.postMessage", channel=app.channel, text="hello, app")
    envelope = event(link, "hello, app")
    ack(link, envelope, payload={})
    assert (envelope["accepts_response_payload"], envelope["retry_attempt"], envelope["retry_reason"]) == (False, 0, "")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", envelope["envelope_id"])
    payload = envelope["payload"]
    assert (payload["type"], payload["team_id"], payload["api_app_id"]) == ("event_callback", workspace.id, app.id)
    assert payload["event_id"].startswith("Ev") and isinstance(payload["event_time"], int)
    assert payload["authorizations"] == [{"enterprise_id": None, "team_id": workspace.id, "user_id": app.bot.id,
                                          "is_bot": True, "is_enterprise_install": False}]
    inner = payload["event"]
    assert (inner["type"], inner["user"], inner["ts"]) == ("message", app.ann.id, said["ts"])
    assert inner["channel_type"] == "channel" and inner["event_ts"]


def test_the_largest_message_is_no_reason_to_close(app, links):
    link = links()
    large = "y" * 40000
    app.ann.post(app.channel, large, attachments=[{"text": "x" * 1040000}])
    ack(link, event(link, large))
    app.ann.post(app.channel, "small")
    event(link, "small")


def test_only_channels_of_its_bot_and_only_events(app, links, workspace):
    link = links()
    elsewhere = workspace.channel(app.ann)
    app.ann.post(elsewhere, "not for the app")
    ts = app.ann.post(app.channel, "for the app")
    app.bot.ok("channels.mark", channel=app.channel, ts=ts)
    app.ann.ok("chat.update", channel=app.channel, ts=ts, text="edited")
    cid = workspace.user()
    cid.ok("channels.join", channel=app.channel)
    link.expect({"type": "events_api", "payload": {"event": {"type": "member_joined_channel", "user": cid.id}}})
    types = {(f["payload"]["event"]["type"], f["payload"]["event"].get("subtype")) for f in link.matching(EVENT)}
    assert types == {("message", None), ("message", "message_changed"), ("member_joined_channel", None)}
    assert "not for the app" not in texts(link)
    assert {f["type"] for f in link.frames} == {"hello", "events_api"}


def test_a_rename(app, links):
    link = links()
    renamed = app.ann.ok("channels.rename", channel=app.channel, name="anew")["channel"]
    inner = link.expect(lambda f: f.get("type") == "events_api" and f["payload"]["event"]["type"] == "channel_rename")
    shown = inner["payload"]["event"]["channel"]
    assert (shown["id"], shown["name"], shown["created"]) == (app.channel, "anew", renamed["created"])


def test_acked_ones_do_not_come_again(extra_instance, app, links):
    quick = extra_instance(app_socket_ack_ms=4000)
    link = links(quick.url)
    for i in range(5):
        app.ann.post(app.channel, f"m{i}")
        ack(link, event(link, f"m{i}"))
    app.ann.post(app.channel, "never acked")
    event(link, "never acked", retry_attempt=1)
    assert sorted(t for t in texts(link) if t != "never acked") == [f"m{i}" for i in range(5)]


def test_acks_are_no_flood(extra_instance, app, links):
    """Any number at once; frames that ack nothing count towards the rate limit."""
    slow = extra_instance()
    link = links(slow.url)
    for i in range(300):
        app.ann.post(app.channel, f"m{i}")
    for i in range(300):
        ack(link, event(link, f"m{i}"))
    app.ann.post(app.channel, "still there")
    ack(link, event(link, "still there"))
    assert "tidings_envelopes_dropped_total 0\n" in app.ann.at(slow.url).page("/metrics").text, "what is acked was not dropped"
    with suppress(OSError):  # closed before all was sent
        for _ in range(1000):
            link.send({"envelope_id": "of nothing"})
    assert link.wait_closed()[0] == 1008


def test_what_is_not_acked_comes_again_and_then_no_more(extra_instance, app, links):
    quick = extra_instance(app_socket_ack_ms=200)
    link = links(quick.url)
    app.ann.post(app.channel, "x")
    again = [event(link, "x", retry_attempt=n) for n in range(3)]
    assert [e["retry_reason"] for e in again] == ["", "timeout", "timeout"]
    assert len({e["envelope_id"] for e in again}) == len({e["payload"]["event_id"] for e in again}) == 1
    page = app.ann.at(quick.url).page
    wait_until(lambda: "tidings_envelopes_dropped_total 1" in page("/metrics").text)
    assert texts(link) == ["x"] * 3


def test_each_to_one_of_several(environment, app, links):
    several = [links(), links(), links(environment.urls[1])]
    seen = set()

    def all_there():
        for link in several:
            for envelope in link.matching(EVENT):
                if envelope["envelope_id"] not in seen:
                    seen.add(envelope["envelope_id"])
                    ack(link, envelope)
        return len(seen) == 30

    for i in range(30):
        app.ann.at(environment.urls[i % 2]).post(app.channel, f"m{i}")
        all_there()
    wait_until(all_there, what="30 envelopes")
    # On a busy machine one may be acked so late that it comes again.
    got = [f["payload"]["event"].get("text") for link in several for f in link.matching({**EVENT, "retry_attempt": 0})]
    assert sorted(got) == sorted(f"m{i}" for i in range(30)), "each once"
    assert all(texts(link) for link in several[:2]), "links of an instance take turns"


def test_unacked_ones_go_to_another_link(extra_instance, app, links):
    """At once when their socket closes, also to a socket on another instance."""
    one, other = extra_instance(app_socket_ack_ms=1000), extra_instance(app_socket_ack_ms=1000)
    link = links(one.url)
    app.ann.post(app.channel, "first")
    envelope = event(link, "first")
    second = links(other.url)
    app.ann.post(app.channel, "second")
    holder, rest = (link, second) if wait_until(lambda: "second" in texts(link) + texts(second)) and (
        "second" in texts(link)) else (second, link)
    holder.close()
    again = rest.expect(lambda f: f.get("type") == "events_api" and f["payload"]["event"].get("text") == "second" and
                        f["retry_attempt"] > 0)
    assert again["retry_reason"] == "timeout"
    assert envelope["retry_attempt"] == 0


def test_a_link_that_ends_late_hurries_no_later_attempt(environment, extra_instance, app, links):
    """It had the first attempt for longer than the timeout; the second one, elsewhere, has its full time."""
    patient, quick = extra_instance(app_socket_ack_ms=60000), extra_instance(app_socket_ack_ms=2000)
    ann = app.ann.at(quick.url)
    link = links(patient.url)
    known(environment, app, link, ann)
    for i in range(32):  # as many as an instance has unacked before it takes none of those that are kept
        ann.post(app.channel, f"m{i}")
    for i in range(32):
        event(link, f"m{i}", retry_attempt=0)
    other = links(quick.url)
    for i in range(1, 32):
        ack(other, event(other, f"m{i}", retry_attempt=1))
    event(other, "m0", retry_attempt=1)
    begun = time.monotonic()
    link.close()
    event(other, "m0", retry_attempt=2)
    assert time.monotonic() - begun > 2.5, "twice as long as the first"


def test_what_nobody_acked_waits_for_the_next_link(extra_instance, app, links):
    quick = extra_instance(app_socket_ack_ms=1000)
    link = links(quick.url)
    app.ann.post(app.channel, "x")
    first = event(link, "x")
    link.close()
    link = links(quick.url)
    again = event(link, "x")
    assert again["envelope_id"] == first["envelope_id"] and again["retry_attempt"] > 0
    ack(link, again)
    app.ann.post(app.channel, "y")
    ack(link, event(link, "y"))
    link.close()
    link = links(quick.url)
    app.ann.post(app.channel, "z")
    event(link, "z")
    assert texts(link) == ["z"]


def known(environment, app, link, *posters):
    """Sees to it that events are kept for the app."""
    acked = set()

    def ack_all():
        for frame in link.matching(EVENT):
            if frame["envelope_id"] not in acked:
                acked.add(frame["envelope_id"])
                ack(link, frame)

    wait_kept(environment, app.id, app.channel, [partial(poster.post, app.channel, "before") for poster in posters], ack_all)


def test_an_ack_by_another_link(environment, app, links):
    """An SDK acks on its new socket before the old one is closed; here the two are on different instances."""
    old = links()
    known(environment, app, old, app.ann)
    app.ann.post(app.channel, "x")
    envelope = event(old, "x")
    new = links(environment.urls[1])
    wait_until(lambda: kept(environment, app.id) == 1)
    ack(new, envelope)
    wait_until(lambda: kept(environment, app.id) == 0, what="the ack noted")
    old.close()
    app.ann.post(app.channel, "y")
    ack(new, event(new, "y"))
    wait_until(lambda: kept(environment, app.id) == 0, what="another ack noted")
    assert texts(new) == ["y"]


def test_events_of_a_gap_come_by_the_next_link(environment, app, links):
    """Also on another instance's: the unacked events, and all events of the time without a socket."""
    link = links()
    known(environment, app, link, *(app.ann.at(url) for url in environment.urls))
    app.ann.post(app.channel, "sent")
    event(link, "sent")
    link.close()
    for i in range(5):
        app.ann.at(environment.urls[i % 2]).post(app.channel, f"m{i}")
    app.ann.ok("channels.setTopic", channel=app.channel, topic="in the gap")
    link = links(environment.urls[1])
    for text in ("sent", *(f"m{i}" for i in range(5))):
        ack(link, event(link, text))
    link.expect(lambda f: f.get("type") == "events_api" and f["payload"]["event"].get("subtype") == "channel_topic")
    assert "before" not in texts(link) and len({frame["envelope_id"] for frame in link.matching(EVENT)}) == 7


def dropped(client):
    return int(re.search(r"^tidings_envelopes_dropped_total (\d+)$", client.page("/metrics").text, re.MULTILINE).group(1))


def test_no_more_is_kept_than_there_is_room_for(environment, app, links, extra_instance):
    small = extra_instance(app_socket_queue_max=3, app_socket_ack_ms=300)
    ann = app.ann.at(small.url)
    link = links(small.url)
    known(environment, app, link, ann)
    link.close()
    before = dropped(ann)
    for i in range(6):
        ann.post(app.channel, f"m{i}")
    wait_until(lambda: dropped(ann) == before + 3, what="three events dropped")
    link = links(small.url)
    assert [event(link, f"m{i}") and i for i in range(3)] == [0, 1, 2]
    assert texts(link)[:3] == ["m0", "m1", "m2"]


def test_nothing_is_kept_for_an_app_that_is_away_for_long(environment, app, links):
    """Events that wait too long are dropped, and later ones are not stored."""
    link = links()
    known(environment, app, link, app.ann)
    link.close()
    app.ann.post(app.channel, "too old")
    wait_until(lambda: kept(environment, app.id) == 1, what="an event that waits")
    with environment.database() as database:
        database.execute("UPDATE app_events SET queued_at = queued_at - interval '1 hour' WHERE app_id = %s", [app.id])
        database.execute("UPDATE apps SET linked_at = linked_at - interval '1 hour' WHERE id = %s", [app.id])
    wait_until(lambda: kept(environment, app.id) == 0, what="the event dropped")
    app.ann.post(app.channel, "not kept")
    environment.wait_fanned_out(app.channel)  # by whoever would keep it for a link that there is by then
    link = links()
    app.ann.post(app.channel, "heard again")
    event(link, "heard again")
    assert "not kept" not in texts(link)


def test_refresh(extra_instance, app, links):
    short = extra_instance(app_socket_life_s=11)
    link = links(short.url)
    link.expect({"type": "disconnect", "reason": "warning"})
    link.expect({"type": "disconnect", "reason": "refresh_requested"})
    assert link.wait_closed()[0] == 1001


def test_more_links_than_an_app_may_have(environment, app, links):
    """Ten on all instances together; the eleventh is refused with a reason."""
    held = [links(environment.urls[i % 2]) for i in range(10)]
    refused = metric(environment.instances[0], "tidings_app_sockets_too_many_total")
    with Socket(Client(app.ann.url, app.token, app.ann.recorder).ok("apps.connections.open")["url"]) as one_more:
        assert one_more.expect({"type": "disconnect"})["reason"] == "too_many_websockets"
        assert one_more.wait_closed()[0] == 1008 and not one_more.matching({"type": "hello"})
    assert metric(environment.instances[0], "tidings_app_sockets_too_many_total") == refused + 1
    held.pop().close()

    def links_again():
        socket = Socket(Client(app.ann.url, app.token, app.ann.recorder).ok("apps.connections.open")["url"])
        with socket:
            return socket.expect(lambda frame: frame["type"] in ("hello", "disconnect"))["type"] == "hello"

    wait_until(links_again, what="room for another link")


def test_a_deleted_app(app, links, workspace):
    link = links()
    workspace.admin.ok("admin.apps.delete", app_id=app.id)
    Client(app.ann.url, app.token, app.ann.recorder).fails("invalid_auth", "apps.connections.open")
    link.expect({"type": "disconnect", "reason": "link_disabled"}, SOON_S)
    link.wait_closed()


def test_a_stopping_instance(environment, app, links):
    instance = environment.instance()
    link = links(instance.url)
    assert instance.stop() == 0
    assert link.wait_closed()[0] == 1001
    assert link.matching({"type": "disconnect", "reason": "refresh_requested"})


@pytest.mark.parametrize("frame", [{}, {"envelope_id": "x"}, {"envelope_id": 5}, {"type": "message", "id": 1}])
def test_other_words_of_a_client_do_no_harm(app, links, frame):
    link = links()
    link.send(frame)
    app.ann.post(app.channel, "still there")
    ack(link, event(link, "still there"))
