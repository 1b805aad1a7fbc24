# SPDX-License-Identifier: Apache-2.0
"""Marks over a socket; and replies to unknown frames."""

import pytest


@pytest.fixture
def room(workspace):
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob)


def mark(socket, channel, ts, **args):
    return socket.request({"id": 7, "type": "mark", "channel": channel, "ts": ts, **args})


def test_a_mark_is_answered_as_by_http(environment, room, sockets):
    ann, bob, channel = room
    first, last = ann.post(channel), ann.post(channel)
    socket, other = sockets(bob), sockets(bob.at(environment.urls[1]))
    reply = mark(socket, channel, first)
    assert reply == {**bob.ok("channels.mark", channel=channel, ts=first), "reply_to": 7}
    assert (reply["last_read"], reply["unread_count"]) == (first, 1)
    for device in (socket, other):
        device.expect({"type": "channel_marked", "channel": channel, "last_read": first, "unread_count": 1})
    assert mark(sockets(bob), channel, last)["unread_count"] == 0 and bob.unread(channel) == 0


def test_the_epoch_counts(room, sockets):
    ann, bob, channel = room
    ts = ann.post(channel)
    bob.ok("channels.mark", channel=channel, ts=ts)
    epoch = bob.ok("channels.markUnread", channel=channel, ts=ts)["read_epoch"]
    socket = sockets(bob)
    assert mark(socket, channel, ts, read_epoch=epoch - 1)["unread_count"] == 1
    assert socket.request({"id": "a", "type": "mark", "channel": channel, "ts": ts, "read_epoch": epoch})["unread_count"] == 0


@pytest.mark.parametrize("args, said", [({"ts": "1"}, "invalid_timestamp"), ({"ts": None}, "ts"), ({"channel": "C0000000000"}, "channel_not_found"),
                                        ({"channel": None}, "channel"), ({"read_epoch": -1}, "read_epoch")])
def test_a_bad_mark(room, sockets, args, said):
    ann, bob, channel = room
    ts = ann.post(channel)
    reply = sockets(bob).request({"id": 3, "type": "mark", "channel": channel, "ts": ts, **args})
    assert reply["ok"] is False and reply["reply_to"] == 3 and said in reply["error"]["msg"]
    assert bob.unread(channel) == 1


def test_a_mark_without_an_id(room, sockets):
    """There is nothing that could be answered: it is refused."""
    ann, bob, channel = room
    ts = ann.post(channel)
    socket = sockets(bob)
    socket.send({"type": "mark", "channel": channel, "ts": ts})
    assert "id" in socket.expect({"type": "error"})["error"]["msg"] and bob.unread(channel) == 1


@pytest.mark.parametrize("frame", [{"type": "no_such_type"}, {"type": 1}, {"text": "x"}])
def test_frames_of_no_known_type(room, sockets, frame):
    socket = sockets(room[1])
    answer = socket.request({**frame, "id": 5})
    assert answer["ok"] is False and set(answer["error"]) == {"code", "msg"}
    socket.send(frame)
    assert socket.expect({"type": "error"})["error"] == answer["error"]
    assert socket.request({"id": 6, "type": "ping"})["type"] == "pong", "and the socket goes on"


def test_what_slack_clients_send_is_answered_as_ever(room, sockets):
    """A ping, and typing, which has no answer."""
    ann, bob, channel = room
    socket, other = sockets(bob), sockets(ann)
    socket.send({"id": 1, "type": "typing", "channel": channel})
    other.expect({"type": "user_typing", "channel": channel})
    assert socket.request({"id": 2, "type": "ping", "time": 3}) == {"type": "pong", "reply_to": 2, "time": 3}
    assert not socket.matching({"ok": False}) and not socket.matching({"type": "error"})
