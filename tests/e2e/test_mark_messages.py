# SPDX-License-Identifier: Apache-2.0
"""channels.markMessages: messages read one by one, whatever the cursor."""

import pytest

from tests.e2e.test_unread import agrees, read_state
from tests.support.retention import drop_by_retention
from tests.support.wait import wait_until

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])


@pytest.fixture
def room(workspace):
    """(ann, bob, channel, ts of five messages of ann's)."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    return ann, bob, channel, [ann.post(channel) for _ in range(5)]


@FAMILIES
def test_just_these_are_read(room, family):
    _, bob, channel, ts = room
    before = read_state(bob, channel)
    reply = bob.ok(f"{family}.markMessages", channel=channel, ts=[ts[0], ts[3]])
    assert reply["unread_count"] == 3 and reply["oldest_unread_ts"] == ts[1]
    assert (reply["last_read"], reply["read_epoch"]) == (before["last_read"], before["read_epoch"])
    agrees(bob, channel, 3)
    assert bob.ok(f"{family}.markMessages", channel=channel, ts=f"{ts[3]},{ts[4]}")["unread_count"] == 2
    agrees(bob, channel, 2)
    assert read_state(bob, channel)["oldest_unread_ts"] == ts[1]


def test_it_may_be_repeated(room):
    _, bob, channel, ts = room
    for _ in range(3):
        assert bob.ok("channels.markMessages", channel=channel, ts=[ts[2], ts[2]])["unread_count"] == 4


def test_only_for_oneself_and_only_what_counts(room):
    ann, bob, channel, ts = room
    own = bob.post(channel)
    reply = ann.post(channel, "quiet", thread_ts=ts[0])
    assert bob.ok("channels.markMessages", channel=channel, ts=[own, reply])["unread_count"] == 5
    bob.ok("channels.markMessages", channel=channel, ts=[ts[0]])
    agrees(bob, channel, 4)
    assert ann.ok("channels.markMessages", channel=channel, ts=[ts[0]])["unread_count"] == 1


def test_a_message_is_subtracted_once(room):
    ann, bob, channel, ts = room
    bob.ok("channels.markMessages", channel=channel, ts=[ts[1], ts[2]])
    ann.ok("chat.delete", channel=channel, ts=ts[1])
    agrees(bob, channel, 3)
    ann.ok("chat.delete", channel=channel, ts=ts[0])
    agrees(bob, channel, 2)
    assert bob.ok("channels.mark", channel=channel, ts=ts[1])["unread_count"] == 2
    assert bob.ok("channels.mark", channel=channel, ts=ts[3])["unread_count"] == 1


def test_gone_when_the_cursor_passes_them(room, environment):
    _, bob, channel, ts = room
    bob.ok("channels.markMessages", channel=channel, ts=[ts[0], ts[1], ts[4]])
    assert bob.ok("channels.mark", channel=channel, ts=ts[1])["unread_count"] == 2
    with environment.database() as database:
        rows = "SELECT ts FROM read_messages WHERE channel_id = %s"
        assert [row[0] for row in database.execute(rows, (channel,))] == [int(ts[4].replace(".", ""))]
        bob.ok("channels.mark", channel=channel, ts=ts[4])
        assert database.execute(rows, (channel,)).fetchall() == []
        singles = "SELECT singles FROM channel_members WHERE channel_id = %s AND user_id = %s"
        assert database.execute(singles, (channel, bob.id)).fetchone() == (0,)
    agrees(bob, channel, 0)


def test_gone_when_everything_is_read(room, extra_instance):
    """They do not count against the limit, either."""
    ann, bob, channel, ts = room
    there = bob.at(extra_instance(singles_max=2).url)
    there.ok("channels.markMessages", channel=channel, ts=ts[:2])
    there.ok("channels.markAll")
    more = [ann.post(channel) for _ in range(3)]
    assert there.ok("channels.markMessages", channel=channel, ts=more[:2])["unread_count"] == 1
    agrees(bob, channel, 1)


def test_gone_with_what_retention_drops(room, environment, extra_instance):
    _, bob, channel, ts = room
    there = bob.at(extra_instance(singles_max=2).url)
    there.ok("channels.markMessages", channel=channel, ts=ts[:2])
    with environment.database() as database:  # he has read nothing since before what is dropped
        database.execute("UPDATE channel_members SET ts = 0 WHERE channel_id = %s AND user_id = %s", [channel, bob.id])
    drop_by_retention(environment, channel, next(m["seq"] for m in bob.history(channel) if m["ts"] == ts[1]))
    agrees(bob, channel, 3)
    assert there.ok("channels.markMessages", channel=channel, ts=ts[2:4])["unread_count"] == 1
    agrees(bob, channel, 1)


@pytest.mark.parametrize("back_to", [0, 2])
def test_unread_again_after_mark_unread(room, back_to):
    _, bob, channel, ts = room
    bob.ok("channels.markMessages", channel=channel, ts=[ts[2], ts[3]])
    assert bob.ok("channels.markUnread", channel=channel, ts=ts[back_to])["unread_count"] == 5 - back_to
    agrees(bob, channel, 5 - back_to)


def test_who_comes_back_starts_anew(room):
    ann, bob, channel, ts = room
    bob.ok("channels.markMessages", channel=channel, ts=ts[:2])
    bob.ok("channels.leave", channel=channel)
    bob.ok("channels.join", channel=channel)
    ann.post(channel)
    agrees(bob, channel, 1)


def test_all_or_none(room):
    ann, bob, channel, ts = room
    gone = ann.post(channel)
    ann.ok("chat.delete", channel=channel, ts=gone)
    for bad in ("1700000000.000000", gone):
        bob.fails("message_not_found", "channels.markMessages", channel=channel, ts=[ts[0], bad])
    bob.fails("invalid_timestamp", "channels.markMessages", channel=channel, ts=[ts[0], "x"])
    bob.fails("invalid_arguments", "channels.markMessages", channel=channel, ts=[ts[0]] * 101)
    agrees(bob, channel, 5)


def test_mentions_read_singly_are_read(room):
    ann, bob, channel, _ = room
    named = ann.post(channel, f"<@{bob.id}>")
    assert bob.ok("channels.markMessages", channel=channel, ts=[named])["mention_count"] == 0


def test_how_many_is_bounded(room, extra_instance):
    _, bob, channel, ts = room
    there = bob.at(extra_instance(singles_max=2).url)
    there.ok("channels.markMessages", channel=channel, ts=ts[:2])
    there.fails("too_many_read_messages", "channels.markMessages", channel=channel, ts=[ts[2]])
    there.ok("channels.mark", channel=channel, ts=ts[0])
    assert there.ok("channels.markMessages", channel=channel, ts=[ts[2]])["unread_count"] == 2


def test_every_device_is_told(room, sockets):
    _, bob, channel, ts = room
    device = sockets(bob)
    bob.ok("channels.markMessages", channel=channel, ts=[ts[1]])
    frame = device.expect({"type": "channel_marked", "channel": channel})
    assert frame["unread_count"] == 4 and frame["oldest_unread_ts"] == ts[0]
    wait_until(lambda: len(device.matching({"type": "channel_marked"})) == 1, what="one frame")
