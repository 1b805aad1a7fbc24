# SPDX-License-Identifier: Apache-2.0
"""Sockets that continue where an earlier connection ended (rtm.connect since=…), and the positions sent to native sockets."""

import concurrent.futures
import itertools
import json
import threading
from urllib.parse import urlsplit

import pytest

from tests.support.catch_up import CatchUp, channel_of
from tests.support.metrics import metric
from tests.support.raw import TEXT, RawWebSocket
from tests.support.sockets import Socket
from tests.support.wait import wait_until

TOO_OLD = "e1.1.1.1.0"
OWN = ("position", "gap", "unread_changed", "thread_marked", "thread_subscribed", "thread_unsubscribed")


def texts(frames):
    return [frame["text"] for frame in frames if frame.get("type") == "message" and "subtype" not in frame]


def position_of(member):
    return member.ok("unread.sync")["position"]


def is_position(frame):
    return frame.get("type") == "position"


@pytest.mark.parametrize("native", [True, False])
def test_what_was_missed_and_then_what_happens(environment, room, workspace, sockets, native):
    """On another instance; a plain socket receives only frames that Slack has."""
    ann, bob, channel = room
    left = workspace.channel(ann, bob)
    root = ann.post(channel, "root")
    since = position_of(bob)
    wanted = [ann.post(channel, f"{n}") for n in range(70)]
    bob.ok("channels.mark", channel=channel, ts=wanted[9])
    bob.ok("threads.follow", channel=channel, thread_ts=root)
    ann.ok("chat.delete", channel=left, ts=ann.post(left, "gone"))
    bob.ok("channels.leave", channel=left)
    ann.post(left, "not for bob")
    made = workspace.channel(ann, bob)
    socket = sockets(bob.at(environment.urls[1]), native=native, since=since)
    socket.expect({"type": "member_joined_channel", "channel": made})
    socket.expect({"type": "channel_created"})
    socket.expect({"type": "member_left_channel", "channel": left})
    marked = socket.expect({"type": "channel_marked", "channel": channel})
    if native:
        socket.expect({"type": "thread_subscribed"})
    live = ann.post(channel, "live")
    socket.expect({"ts": live})
    assert socket.frames[0] == {"type": "hello"}
    assert [frame["ts"] for frame in socket.matching({"type": "message", "channel": channel})] == [*wanted, live]
    assert marked["unread_count"] == 60
    assert [frame["type"] for frame in socket.frames if channel_of(frame) == left][-1] == "member_left_channel"
    assert not socket.matching({"text": "not for bob"}) and not socket.matching({"type": "gap"})
    own = {frame["type"] for frame in socket.frames if frame["type"] in OWN}
    assert "position" in own if native else not own


def test_positions_while_it_catches_up(environment, room, workspace, sockets):
    """One follows the first event, and then at least every 50 frames. From each position exactly the later events are sent."""
    ann, bob, channel = room
    since = position_of(bob)
    for n in range(130):
        ann.post(channel, f"{n}")
    socket = sockets(bob, native=True, since=since)
    socket.expect({"text": "129"})
    wait_until(lambda: is_position(socket.frames[-1]), what="the position at the end")
    frames = socket.frames
    places = [place for place, frame in enumerate(frames) if is_position(frame)]
    assert places[:2] == [1, 3] and all(after - before <= 51 for before, after in itertools.pairwise(places))
    for place in places[:-1]:
        rest = CatchUp(bob, bob.at(environment.urls[1]), since=frames[place]["position"])
        assert texts(rest.all()) == texts(frames[place:])
    again = CatchUp(bob, since=frames[-1]["position"])
    assert not [frame for frame in again.all() if frame.get("channel") != channel], "the end of all that was missed"


def test_a_position_goes_on_in_every_way(environment, room, sockets, streams):
    ann, bob, channel = room
    socket = sockets(bob, native=True)
    wait_until(lambda: len(socket.frames) > 1, what="the position after hello")
    ann.post(channel, "one")
    position = socket.frames[1]["position"]
    assert texts(CatchUp(bob, since=position).all()) == ["one"]
    streams(bob.at(environment.urls[1]), position).expect({"text": "one"})
    sockets(bob.at(environment.urls[1]), since=position).expect({"text": "one"})
    stream = streams(bob)
    ann.post(channel, "two")
    stream.expect({"text": "two"})
    ann.post(channel, "three")
    sockets(bob, native=True, since=stream.last_id).expect({"text": "three"})


def test_positions_of_what_happens_now(room, workspace, sockets):
    """They follow the frames; a plain socket gets none, and an idle socket that only pings gets none but the first."""
    ann, bob, channel = room
    idle, native, plain = sockets(workspace.user(), native=True), sockets(ann, native=True), sockets(ann)
    first = native.expect(is_position)
    idle.request({"id": 1, "type": "ping"})
    bob.ok("chat.meMessage", channel=channel, text="live")
    plain.expect({"text": "live"})
    later = native.expect(lambda frame: is_position(frame) and frame != first)
    assert native.frames.index(later) > native.frames.index(native.expect({"text": "live"}))
    bob.post(channel, "next")
    assert texts(CatchUp(ann, since=later["position"]).all()) == ["next"]
    assert not plain.matching(is_position) and len(idle.matching(is_position)) == 1


def places(frames):
    """The channels' events among the frames."""
    return [(channel_of(frame), frame["seq"]) for frame in frames if "seq" in frame and "reply_to" not in frame]


def change(author, message, is_delete):
    author.ok("chat.delete" if is_delete else "chat.update", **message, **({} if is_delete else {"text": "edited"}))


def test_under_load_a_position_covers_every_frame_before_it(environment, workspace, sockets):
    """On whatever instance a message was posted, edited or deleted: no event comes again after a resume, and none is missed."""
    ann, bob = workspace.users(2)
    channels = [workspace.channel(ann, bob) for _ in range(6)]
    begin = position_of(bob)
    devices = [sockets(bob.at(environment.urls[n % 2]), native=True) for n in range(6)]
    stop = threading.Event()

    def post(number):
        author, posted = ann.at(environment.urls[number % 2]), []
        for n in itertools.takewhile(lambda n: n < 5000 and not stop.is_set(), itertools.count()):
            channel = channels[(number + n) % len(channels)]
            posted.append({"channel": channel, "ts": author.post(channel, f"{number} {n}")})
            if n >= 20 and n % 3 == 0:
                change(author, posted[n - 20], is_delete=n % 2)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        posting = [pool.submit(post, number) for number in range(4)]
        try:
            wait_until(lambda: all(len(device.matching(is_position)) >= 3 for device in devices), what="positions under load")
        finally:
            stop.set()
        for done in posting:
            done.result()
    everything = places(CatchUp(bob, since=begin).all(limit=1000))
    assert len(everything) == len(set(everything)) > 100
    for device in devices:
        frames = device.frames
        for index in [index for index, frame in enumerate(frames) if is_position(frame)][1:]:
            before, rest = set(places(frames[:index])), places(CatchUp(bob, since=frames[index]["position"]).all(limit=1000))
            assert not before & set(rest), "what was sent before the position comes again"
            assert len(rest) == len(set(rest)) and before | set(rest) == set(everything)


@pytest.mark.parametrize("method", ["rtm.connect", "rtm.start"])
def test_a_position_that_is_none_or_of_another(environment, room, method):
    """Nothing is made."""
    ann, bob, _ = room
    others = position_of(ann)
    with environment.database() as database:
        count = "SELECT count(*) FROM tickets k JOIN tokens t ON t.id = k.token_id WHERE t.user_id = %s"
        for since in ("x", "e1.1", others, "*" * 3000):
            reply = bob.fails("invalid_position", method, since=since)
            assert "since" in reply.messages
        assert database.execute(count, [bob.id]).fetchone()[0] == 0
    assert "since" not in bob.ok(method, since="")["url"], "what is empty is absent"
    path = urlsplit(bob.ok(method, since=position_of(bob))["url"]).path
    with RawWebSocket(f"{bob.url}{path}", "?since=x") as raw:
        assert raw.handshake.status == 400
    with RawWebSocket(f"{bob.url}{path}", f"?since={others}") as raw:
        assert raw.handshake.status == 400


def test_the_ticket_is_the_last_segment(room, streams):
    _, bob, _ = room
    parts = urlsplit(bob.ok("rtm.connect", since=position_of(bob))["url"])
    ticket = parts.path.rsplit("/", 1)[1]
    assert parts.query.startswith("since=e1.") and ticket.startswith("t")
    with RawWebSocket(bob.url, f"/rtm/?ticket={ticket}&{parts.query}") as raw:
        assert raw.handshake.status == 101 and json.loads(raw.read_until(TEXT)) == {"type": "hello"}


def test_a_position_that_is_too_old(room, sockets):
    ann, bob, channel = room
    native = sockets(bob, native=True, since=TOO_OLD)
    wait_until(lambda: len(native.frames) > 2, what="the gap and the position")
    hello, gap, position = native.frames[:3]
    assert (hello, gap) == ({"type": "hello"}, {"type": "gap", "channel": None}) and is_position(position)
    ann.post(channel, "after")
    native.expect({"text": "after"})
    assert texts(CatchUp(bob, since=position["position"]).all()) == ["after"]
    plain = Socket(bob.ok("rtm.connect", since=TOO_OLD)["url"])
    assert plain.wait_closed() == (1012, "gap")
    plain.close()


def test_as_many_as_may_be_read_are_no_gap(extra_instance, room, sockets):
    ann, bob, channel = room
    since = position_of(bob)
    for n in range(5):
        ann.post(channel, f"{n}")
    there = extra_instance(resume_max_events=5)
    socket = sockets(bob.at(there.url), native=True, since=since)
    socket.expect({"text": "4"})
    assert texts(socket.frames) == ["0", "1", "2", "3", "4"] and not socket.matching({"type": "gap"})
    assert metric(there, "tidings_gaps_told_total") == 0
    ann.post(channel, "5")
    there = extra_instance(resume_max_events=5)
    sockets(bob.at(there.url), native=True, since=since).expect({"type": "gap", "channel": channel})
    assert metric(there, "tidings_gaps_told_total") == 1


def test_more_than_may_be_read_is_a_gap(extra_instance, room, sockets):
    ann, bob, channel = room
    since = position_of(bob)
    for n in range(9):
        ann.post(channel, f"{n}")
    there = bob.at(extra_instance(resume_max_events=5).url)
    native = sockets(there, native=True, since=since)
    gap = native.expect({"type": "gap", "channel": channel})
    native.expect({"text": "8"})
    assert (gap["from_seq"], gap["to_seq"]) == (3, 10) and texts(native.frames) == ["8"]
    plain = Socket(there.ok("rtm.connect", since=since)["url"])
    assert plain.wait_closed() == (1012, "gap")
    plain.close()


def test_a_client_that_does_not_read_while_it_catches_up(extra_instance, room):
    """Only as much is read for it as its queue and its connection hold; in the end it has everything."""
    ann, bob, channel = room
    small = extra_instance(socket_queue_max_bytes=65536)
    since = position_of(bob)
    for n in range(180):
        ann.post(channel, f"{n} " + "x" * 39000)
    seen = []

    def stands_still():
        seen.append(metric(small, "tidings_events_resumed_total"))
        return len(seen) > 3 and seen[-1] > 0 and len(set(seen[-4:])) == 1

    parts = urlsplit(bob.at(small.url).ok("rtm.connect", native=True, since=since)["url"])
    with RawWebSocket(f"{small.url}{parts.path}", f"?{parts.query}") as raw:
        wait_until(stands_still, interval=0.2, what="the end of what there is room for")
        assert seen[-1] < 180
        frames = [json.loads(raw.read_until(TEXT))]
        while len(texts(frames)) < 180:
            frames.append(json.loads(raw.read_until(TEXT)))
    assert [text.split()[0] for text in texts(frames)] == [f"{n}" for n in range(180)]


def test_a_post_while_it_catches_up(room, sockets):
    """It is acked, and is sent at most once more: with the backlog."""
    ann, bob, channel = room
    since = position_of(bob)
    for n in range(100):
        ann.post(channel, f"{n}")
    socket = sockets(bob, native=True, since=since)
    ack = socket.request({"id": 1, "type": "message", "channel": channel, "text": "own"})
    live = ann.post(channel, "live")
    socket.expect({"ts": live})
    assert ack["ok"] and len(socket.matching({"type": "message", "ts": ack["ts"]})) <= 1
    assert [text for text in texts(socket.frames) if text != "own"] == [*(f"{n}" for n in range(100)), "live"]
