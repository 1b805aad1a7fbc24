# SPDX-License-Identifier: Apache-2.0
"""channel_focus and channel_blur: what arrives in a channel that one looks at is read, on every device."""

import concurrent.futures
import contextlib

import pytest

from tests.support.wait import wait_until


@pytest.fixture
def room(workspace):
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def focus(socket, channel, **args):
    return socket.request({"id": 1, "type": "channel_focus", "channel": channel, **args})


def blur(socket, channel):
    return socket.request({"id": 2, "type": "channel_blur", "channel": channel})


def all_read(client, channel):
    wait_until(lambda: client.unread(channel) == 0, what="all to be read")


def test_what_arrives_is_marked_on_every_device(environment, room):
    ann, bob, channel = room
    with bob.socket() as socket, bob.at(environment.urls[1]).socket() as other:
        assert focus(socket, channel) == {"ok": True, "reply_to": 1}
        ts = ann.post(channel)
        for device in (socket, other):
            device.expect({"type": "channel_marked", "channel": channel, "last_read": ts, "unread_count": 0})
        assert bob.unread(channel) == 0


def test_focus_alone_marks_nothing(room):
    ann, bob, channel = room
    ann.post(channel)
    with bob.socket() as socket:
        focus(socket, channel)
        blur(socket, channel)
        assert bob.unread(channel) == 1 and not socket.matching({"type": "channel_marked"})


def test_many_arrivals_are_a_few_marks_and_the_last_one_is_among_them(room):
    ann, bob, channel = room
    with bob.socket() as socket:
        focus(socket, channel)
        last = [ann.post(channel) for _ in range(30)][-1]
        socket.expect({"type": "channel_marked", "channel": channel, "last_read": last, "unread_count": 0})
        marks = socket.matching({"type": "channel_marked"})
        assert len(marks) <= 1 + float(marks[-1]["event_ts"]) - float(marks[0]["event_ts"]) + 1
    assert bob.unread(channel) == 0


def test_after_a_mark_unread_nothing_is_marked_until_it_is_focused_anew(environment, room, workspace):
    """Wherever the message was marked unread: neither what just arrived and is not marked yet, nor what arrives later."""
    ann, bob, channel = room
    clock = workspace.channel(ann, bob)
    with bob.socket() as socket:
        for where in channel, clock:
            focus(socket, where)
            first = ann.post(where)
            socket.expect({"type": "channel_marked", "channel": where, "last_read": first})
        unread, last = ann.post(channel), ann.post(clock)
        socket.expect({"type": "message", "channel": channel, "ts": unread})
        there = bob.at(environment.urls[1])
        assert there.ok("channels.markUnread", channel=channel, ts=unread)["unread_count"] == 1
        ann.post(channel)
        socket.expect({"type": "channel_marked", "channel": clock, "last_read": last})  # the second is over
        assert bob.unread(channel) == 2
        focus(socket, channel)
        later = ann.post(channel)
        socket.expect({"type": "channel_marked", "channel": channel, "last_read": later, "unread_count": 0})


def test_a_mark_unread_before_the_focus_does_not_end_it(room):
    ann, bob, channel = room
    ts = ann.post(channel)
    bob.ok("channels.markUnread", channel=channel, ts=ts)
    with bob.socket() as socket:
        focus(socket, channel)
        last = ann.post(channel)
        socket.expect({"type": "channel_marked", "channel": channel, "last_read": last, "unread_count": 0})


def silent(socket):
    """Answers no pings from now on, like a device whose connection only seems to stand."""
    socket._ws.pong = lambda *unused: None
    return socket


def marked_elsewhere(ann, socket, clock):
    """Waits until a message that was posted now is marked by the focus of another socket."""
    ts = ann.post(clock)
    socket.expect({"type": "channel_marked", "channel": clock, "last_read": ts})


@pytest.mark.parametrize("answer", ["frame", "pong", "blur"])
def test_only_what_the_device_has_answered_after_is_marked(room, workspace, answer):
    ann, bob, channel = room
    clock = workspace.channel(ann, bob)
    with bob.socket() as socket, silent(bob.socket()) as device:
        focus(socket, clock)
        focus(device, channel)
        ts = ann.post(channel)
        device.expect({"type": "message", "ts": ts})
        wait_until(lambda: device.pings, what="a ping soon after the message")
        for _ in range(2):
            marked_elsewhere(ann, socket, clock)
        assert bob.unread(channel) == 1, "nothing has come from the device since"
        if answer == "frame":
            device.send({"type": "typing", "channel": channel})
        elif answer == "pong":
            device._ws.send(device.pings[-1], 0xA)
        else:
            blur(device, channel)
        device.expect({"type": "channel_marked", "channel": channel, "last_read": ts, "unread_count": 0})
        ann.post(channel)
        marked_elsewhere(ann, socket, clock)
        assert bob.unread(channel) == 1, "that answer came before this message"


def test_a_device_that_vanishes_marks_nothing(room, workspace):
    ann, bob, channel = room
    clock = workspace.channel(ann, bob)
    with bob.socket() as socket:
        device = silent(bob.socket())
        focus(socket, clock)
        focus(device, channel)
        device.expect({"type": "message", "ts": ann.post(channel)})
        device._ws.shutdown()
        marked_elsewhere(ann, socket, clock)
        assert bob.unread(channel) == 1


def test_pings_of_a_focus_are_few(room):
    """However many messages arrive: at most one a second."""
    ann, bob, channel = room
    with bob.socket() as socket:
        focus(socket, channel)
        first = ann.post(channel)
        last = [ann.post(channel) for _ in range(30)][-1]
        socket.expect({"type": "channel_marked", "channel": channel, "last_read": last})
        assert 1 <= len(socket.pings) <= 2 + float(last) - float(first)


def test_a_token_that_may_not_mark(workspace, room):
    ann, bob, channel = room
    reply = workspace.admin.ok("admin.tokens.create", user_id=bob.id, scopes="rtm:stream,channels:read")
    bob.token = reply["token"]
    with bob.socket() as socket:
        reply = focus(socket, channel)
        assert reply["ok"] is False and reply["error"]["msg"] == "missing_scope"
        socket.send({"type": "channel_focus", "channel": channel})
        assert socket.expect({"type": "error"})["error"]["msg"] == "missing_scope"
        assert blur(socket, channel)["ok"] is True


def test_only_the_one_who_looks_and_only_there(room, workspace):
    ann, bob, channel = room
    cid, elsewhere = workspace.user(), workspace.channel(ann, bob)
    ann.ok("channels.invite", channel=channel, users=[cid.id])
    with bob.socket() as socket:
        focus(socket, channel)
        ann.post(elsewhere)
        ann.post(channel)
        all_read(bob, channel)
        assert cid.unread(channel) == 1 and bob.unread(elsewhere) == 1


@pytest.mark.parametrize("end", ["blur", "close", "leave", "kick"])
def test_it_ends(room, end):
    ann, bob, channel = room
    with bob.socket() as socket, bob.socket() as other:
        focus(socket, channel)
        ann.post(channel)
        all_read(bob, channel)
        if end == "blur":
            assert blur(socket, channel) == {"ok": True, "reply_to": 2}
        elif end == "close":
            socket.close()
        else:
            if end == "leave":
                bob.ok("channels.leave", channel=channel)
            else:
                ann.ok("channels.kick", channel=channel, user=bob.id)
            other.expect({"type": "member_left_channel", "channel": channel, "user": bob.id})
            ann.ok("channels.invite", channel=channel, users=[bob.id])
            other.expect({"type": "member_joined_channel", "channel": channel, "user": bob.id})
        ts = ann.post(channel)
        other.expect({"type": "message", "ts": ts})
        assert bob.unread(channel) == 1


def test_what_arrived_before_the_end_is_read(room):
    """The second mark is due a second after the first; if focus is removed earlier, the messages still count as read."""
    ann, bob, channel = room
    with bob.socket() as socket:
        focus(socket, channel)
        for _ in range(3):
            ts = ann.post(channel)
        socket.expect({"type": "message", "ts": ts})
        blur(socket, channel)
        all_read(bob, channel)


def test_twice_is_once(room):
    ann, bob, channel = room
    with bob.socket() as socket:
        focus(socket, channel)
        focus(socket, channel)
        blur(socket, channel)
        ts = ann.post(channel)
        socket.expect({"type": "message", "ts": ts})
        assert bob.unread(channel) == 1
        assert blur(socket, channel)["ok"] is True


@pytest.mark.parametrize("kind", ["channel_focus", "channel_blur"])
@pytest.mark.parametrize("channel", [None, "C0000000000", 7, "", "x" * 3000])
def test_a_channel_that_is_not_there(room, kind, channel):
    _, bob, _ = room
    with bob.socket() as socket:
        reply = socket.request({"id": 3, "type": kind, "channel": channel})
        assert reply["ok"] is False and reply["error"]["msg"] == "channel_not_found"
        socket.send({"type": kind, "channel": channel})
        assert socket.expect({"type": "error"})["error"]["msg"] == "channel_not_found"


def test_a_channel_of_others(room, workspace):
    ann, bob, _ = room
    others = workspace.channel(ann)
    with bob.socket() as socket:
        assert focus(socket, others)["error"]["msg"] == "channel_not_found"


def test_only_so_many_at_once(room, workspace):
    ann, _, _ = room
    rooms = [workspace.channel(ann) for _ in range(17)]
    with ann.socket() as socket:
        replies = [socket.request({"id": n, "type": "channel_focus", "channel": rooms[n]}) for n in range(17)]
        assert [reply["ok"] for reply in replies] == [True] * 16 + [False]
        assert replies[16]["error"]["msg"].startswith("slow down") or replies[16]["error"]["msg"] == "ratelimited"


def overtaking(device, kind, seen):
    """The frames of `kind` that arrived before the message up to which they mark."""
    arrived, early = set(), []
    for frame in device.frames:
        arrived.add((frame.get("channel"), frame.get("ts")) if frame["type"] == "message" else None)
        place = (frame.get("channel"), frame.get("last_read"))
        if frame["type"] == kind and place in seen and place not in arrived:
            early.append(frame)
    return early


@pytest.mark.parametrize("native", [False, True])
def test_no_mark_overtakes_its_message(environment, workspace, native):
    """A focused message is marked at once on one instance, and the mark reaches other instances by another path than the message."""
    ann, bob = workspace.users(2)
    channels = [workspace.channel(ann, bob) for _ in range(48)]
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(bob.at(environment.urls[1]).socket(native=native))
        for i in range(0, len(channels), 16):
            socket = stack.enter_context(bob.socket())
            for channel in channels[i:i + 16]:
                assert focus(socket, channel)["ok"]

        def post(part):
            author = ann.at(environment.urls[0])
            return [(channel, author.post(channel)) for channel in part]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            seen = {place for places in pool.map(post, [channels[i::8] for i in range(8)]) for place in places}
        for channel, ts in seen:
            device.expect({"type": "channel_marked", "channel": channel, "last_read": ts})
            device.expect({"type": "message", "channel": channel, "ts": ts})
        early = overtaking(device, "channel_marked", seen) + overtaking(device, "unread_changed", seen)
        assert not early, f"{len(early)} of {len(seen)}"


def test_no_mark_of_a_thread_overtakes_its_reply(environment, workspace):
    ann, bob = workspace.users(2)
    channels = [workspace.channel(ann, bob) for _ in range(8)]
    roots = {channel: bob.post(channel, "root") for channel in channels}
    with bob.at(environment.urls[1]).socket(native=True) as device:
        seen = set()
        for channel, root in roots.items():
            for i in range(4):
                ts = ann.post(channel, f"{i}", thread_ts=root)
                bob.ok("threads.mark", channel=channel, thread_ts=root, ts=ts)
                seen.add((channel, ts))
        for channel, ts in seen:
            device.expect({"type": "message", "channel": channel, "ts": ts})
        for channel in channels:
            last = max(ts for where, ts in seen if where == channel)
            device.expect(lambda f, c=channel, t=last: f["type"] == "thread_marked" and f["channel"] == c
                          and f["subscription"]["last_read"] == t)
        marks = [frame for frame in device.frames if frame["type"] == "thread_marked"]
        arrived = []
        for frame in device.frames:
            arrived.append((frame.get("channel"), frame.get("ts")))
            if frame in marks:
                assert (frame["channel"], frame["subscription"]["last_read"]) in arrived
