# SPDX-License-Identifier: Apache-2.0
"""channels.markMany: as that many channels.mark, in one commit."""

import pytest

NOBODYS_TS = "1700000000.000000"
STATE = {"channel", "last_read", "read_epoch", "has_unreads", "unread_count", "unread_count_display", "unread_capped", "mention_count",
         "is_muted", "notify"}


@pytest.fixture
def people(workspace):
    return workspace.users(2)


def mark_many(client, *marks, family="channels", **args):
    return client.ok(f"{family}.markMany", marks=[mark if isinstance(mark, dict) else dict(zip(("channel", "ts", "read_epoch"), mark))
                                                  for mark in marks], **args)["results"]


@pytest.mark.parametrize("family, encoding", [("channels", "json"), ("conversations", "form"), ("channels", "query")])
def test_each_is_marked_and_answered_in_order(people, workspace, family, encoding):
    ann, bob = people
    rooms = [workspace.channel(ann, bob, private=n == 1) for n in range(3)]
    posts = {room: [ann.post(room) for _ in range(3)] for room in rooms}
    results = mark_many(bob, (rooms[2], posts[rooms[2]][0]), (rooms[0], posts[rooms[0]][2]), (rooms[1], posts[rooms[1]][1]),
                        family=family, encoding=encoding)
    assert [(r["channel"], r["last_read"], r["unread_count"]) for r in results] == \
        [(rooms[2], posts[rooms[2]][0], 2), (rooms[0], posts[rooms[0]][2], 0), (rooms[1], posts[rooms[1]][1], 1)]
    for result in results:
        assert set(result) - {"oldest_unread_ts"} == STATE
        info = bob.ok("channels.info", channel=result["channel"])["channel"]
        assert {name: info[name] for name in result if name != "channel"} == {k: v for k, v in result.items() if k != "channel"}


def test_a_repeated_channel(people, workspace):
    """The marks count in order, which is: the furthest stays."""
    ann, bob = people
    room = workspace.channel(ann, bob)
    posts = [ann.post(room) for _ in range(4)]
    results = mark_many(bob, (room, posts[0]), (room, posts[2]), (room, posts[1]))
    assert [(r["last_read"], r["unread_count"]) for r in results] == [(posts[2], 1)] * 3
    assert bob.unread(room) == 1
    assert mark_many(bob, (room, posts[0]))[0]["last_read"] == posts[2], "no cursor goes back"


def test_marks_of_an_epoch_that_is_over(people, workspace):
    ann, bob = people
    room, other = workspace.channel(ann, bob), workspace.channel(ann, bob)
    first, last = ann.post(room), ann.post(room)
    ts = ann.post(other)
    bob.ok("channels.mark", channel=room, ts=last)
    epoch = bob.ok("channels.markUnread", channel=room, ts=first)["read_epoch"]
    late, now = mark_many(bob, (room, last, epoch - 1), (other, ts, 0))
    assert (late["read_epoch"], late["unread_count"], now["unread_count"]) == (epoch, 2, 0)
    assert mark_many(bob, (room, last, epoch))[0]["unread_count"] == 0


def test_what_is_wrong_with_one_stops_no_other(people, workspace):
    """Each result equals the reply of channels.mark."""
    ann, bob = people
    room, public, private = workspace.channel(ann, bob), workspace.channel(ann), workspace.channel(ann, private=True)
    archived, left = workspace.channel(ann, bob), workspace.channel(ann, bob)
    ts = ann.post(room)
    old = ann.post(archived)
    ann.ok("channels.archive", channel=archived)
    bob.ok("channels.leave", channel=left)
    bad = [(public, ts), (private, ts), (left, ts), ("C0000000000", ts), ("U0000000000", ts), ("x" * 300, ts), (room, "1"), (room, ""),
           (room, ts, -1), (room, ts, "x"), {"ts": ts}, {"channel": room}, {"channel": None, "ts": ts}, {}]
    bad = [entry if isinstance(entry, dict) else dict(zip(("channel", "ts", "read_epoch"), entry)) for entry in bad]
    results = mark_many(bob, *bad, (archived, old), (room, ts))
    for entry, result in zip(bad, results):
        alone = bob.call("channels.mark", **{name: value for name, value in entry.items() if value is not None})
        assert result["error"] == alone["error"], (entry, result)
        assert result["channel"] == (entry.get("channel") or "") and set(result) <= {"channel", "error", "messages"}
        assert result.get("messages") == alone.get("response_metadata", {}).get("messages"), (entry, result, dict(alone))
    assert [result["unread_count"] for result in results[len(bad):]] == [0, 0]
    assert bob.unread(room) == 0


@pytest.mark.parametrize("entry", ["x", 1, None, [], [1]])
def test_a_mark_that_is_no_object(people, workspace, entry):
    ann, bob = people
    room = workspace.channel(ann, bob)
    ts = ann.post(room)
    wrong, right = bob.ok("channels.markMany", marks=[entry, {"channel": room, "ts": ts, "more": {"is": ["ignored"]}}])["results"]
    assert (wrong["channel"], wrong["error"], right["unread_count"]) == ("", "invalid_arguments", 0) and "marks" in wrong["messages"][0]


def test_the_most_at_once(people, workspace):
    ann, bob = people
    room = workspace.channel(ann, bob)
    posts = [ann.post(room) for _ in range(3)]
    marks = [(room, posts[0])] * 999
    reply = bob.call("channels.markMany", marks=[{"channel": room, "ts": posts[2]}] * 1001)
    assert reply["error"] == "invalid_arguments" and "marks" in reply.messages and "1000" in reply.messages
    assert bob.unread(room) == 3, "nothing is marked"
    results = mark_many(bob, *marks, (room, posts[1]))
    assert len(results) == 1000 and results[-1]["last_read"] == posts[1] and bob.unread(room) == 1


def test_every_device_is_told_of_what_changed(people, workspace, environment, sockets):
    """Wherever the mark is in the list. A frame may be repeated if the other instance took over from a slow one."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(3)]
    ts = {room: ann.post(room) for room in rooms}
    bob.ok("channels.mark", channel=rooms[1], ts=ts[rooms[1]])
    devices = [sockets(bob.at(url)) for url in environment.urls]
    filler = ("C0000000000", NOBODYS_TS)
    results = mark_many(bob, (rooms[0], ts[rooms[0]]), *[filler] * 550, (rooms[1], ts[rooms[1]]), (rooms[2], ts[rooms[2]]))
    assert [r.get("unread_count") for r in results[:1] + results[-2:]] == [0, 0, 0]
    for device in devices:
        for room in (rooms[0], rooms[2]):
            device.expect({"type": "channel_marked", "channel": room, "ts": ts[room], "unread_count": 0})
        ann.post(rooms[1], "the end")
        device.expect({"text": "the end"})
        assert {frame["channel"] for frame in device.matching({"type": "channel_marked"})} == {rooms[0], rooms[2]}


def test_one_commit(people, workspace, environment):
    """Parts of the list are not there before others: what changed has one transaction."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(2)]
    ts = {room: ann.post(room) for room in rooms}
    mark_many(bob, (rooms[0], ts[rooms[0]]), *[("C0000000000", NOBODYS_TS)] * 600, (rooms[1], ts[rooms[1]]), (rooms[0], ts[rooms[0]]))
    with environment.database() as database:
        changed = database.execute("SELECT count(DISTINCT changed), count(*) FROM channel_members WHERE user_id = %s AND channel_id = ANY(%s)",
                                   [bob.id, rooms]).fetchone()
    assert changed == (1, 2)
    assert [bob.unread(room) for room in rooms] == [0, 0]
