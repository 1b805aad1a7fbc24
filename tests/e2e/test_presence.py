# SPDX-License-Identifier: Apache-2.0
"""Presence and typing."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.sockets import Socket
from tests.support.wait import wait_until

TOLD_EVERY_S = 0.2  # what changes within this time comes in one frame
TYPING_EVERY_S = 0.5


def presence(member, of=None):
    return member.ok("users.getPresence", **({"user": of.id} if of else {}))["presence"]


def about(user, shown):
    """Matches a presence_change of `user`, alone or with others."""
    return lambda frame: (frame.get("type") == "presence_change" and frame["presence"] == shown
                          and user.id in frame.get("users", [frame.get("user")]))


def test_nobody_is_there_at_first(room):
    ann, bob, _ = room
    assert presence(ann, bob) == presence(ann) == "away"


@pytest.mark.parametrize("kind", ["socket", "stream"])
def test_a_connection_makes_active_on_every_instance(environment, room, sockets, streams, kind):
    ann, bob, _ = room
    opened = sockets(bob) if kind == "socket" else streams(bob)
    for url in environment.urls:
        wait_until(lambda u=url: presence(ann.at(u), bob) == "active")
    opened.close()
    for url in environment.urls:
        wait_until(lambda u=url: presence(ann.at(u), bob) == "away")


def test_ones_own_presence_says_more(environment, room, sockets):
    ann, bob, _ = room
    mine = ann.ok("users.getPresence")
    assert (mine["online"], mine["auto_away"], mine["manual_away"], mine["connection_count"]) == (False, True, False, 0)
    assert isinstance(mine["last_activity"], int)
    sockets(ann), sockets(ann), sockets(ann.at(environment.urls[1]))
    wait_until(lambda: ann.ok("users.getPresence", user=ann.id)["connection_count"] == 3)
    mine = ann.ok("users.getPresence")
    assert (mine["presence"], mine["online"], mine["auto_away"]) == ("active", True, False)
    assert set(bob.ok("users.getPresence", user=ann.id)) == {"ok", "presence"}


def test_one_of_two_devices_goes(environment, room, sockets):
    ann, bob, _ = room
    watcher = sockets(ann)
    first, second = sockets(bob), sockets(bob.at(environment.urls[1]))
    wait_until(lambda: bob.ok("users.getPresence")["connection_count"] == 2)
    watcher.send({"type": "presence_sub", "ids": [bob.id]})
    watcher.expect(about(bob, "active"))
    first.close()
    wait_until(lambda: bob.ok("users.getPresence")["connection_count"] == 1)
    assert presence(ann, bob) == "active"
    second.close()
    watcher.expect(about(bob, "away"))
    assert len(watcher.matching({"type": "presence_change"})) == 2


def test_who_goes_again_has_the_time_to_reconnect_again(extra_instance, room):
    ann, bob, _ = room
    there = bob.at(extra_instance(presence_grace_ms=4000).url)
    with there.socket():
        wait_until(lambda: presence(ann, bob) == "active")
    for seconds in (2, 3.2):
        with there.socket():
            closed = time.monotonic()
        while (shown := presence(ann, bob)) and time.monotonic() < closed + seconds:
            assert shown == "active"
    wait_until(lambda: presence(ann, bob) == "away")


def test_without_a_time_to_reconnect(extra_instance, room):
    ann, bob, _ = room
    hasty = extra_instance(presence_grace_ms=0)
    with bob.at(hasty.url).socket():
        wait_until(lambda: presence(ann, bob) == "active")
    wait_until(lambda: presence(ann, bob) == "away")


def test_set_by_hand(environment, room, sockets):
    ann, bob, _ = room
    watcher = sockets(ann.at(environment.urls[1]))
    device = sockets(bob)
    watcher.send({"type": "presence_sub", "ids": [bob.id]})
    watcher.expect(about(bob, "active"))
    bob.ok("users.setPresence", presence="away")
    watcher.expect(about(bob, "away"))
    device.expect({"type": "manual_presence_change", "presence": "away"})
    assert presence(ann, bob) == "away"
    mine = bob.ok("users.getPresence")
    assert mine["manual_away"] is True and mine["online"] is True
    other = sockets(bob.at(environment.urls[1]))
    assert presence(ann, bob) == "away", "another device does not undo it"
    bob.ok("users.setPresence", presence="auto")
    other.expect({"type": "manual_presence_change", "presence": "active"})
    wait_until(lambda: len(watcher.matching(about(bob, "active"))) == 2)
    assert presence(ann, bob) == "active" and bob.ok("users.getPresence")["manual_away"] is False


def test_by_hand_while_nobody_is_connected(room, sockets):
    ann, bob, _ = room
    bob.ok("users.setPresence", presence="away")
    device = sockets(bob)
    wait_until(lambda: bob.ok("users.getPresence")["connection_count"] == 1)
    assert presence(ann, bob) == "away"
    assert bob.ok("users.getPresence")["manual_away"] is True and device.is_open


def test_set_by_hand_as_a_connection_comes(workspace):
    """The last choice is shown, whichever of the two operations finishes first."""
    for number in range(20):
        bob = workspace.user()
        before, chosen, shown = (("away", "auto", "active"), ("auto", "away", "away"))[number % 2]
        bob.ok("users.setPresence", presence=before)
        url = bob.ok("rtm.connect")["url"]
        with ThreadPoolExecutor() as pool:
            opening = pool.submit(Socket, url)
            bob.ok("users.setPresence", presence=chosen)
        with opening.result():
            wait_until(lambda who=bob: who.ok("users.getPresence")["connection_count"] == 1)
            assert presence(bob) == shown


@pytest.mark.parametrize("bad", [{}, {"presence": ""}, {"presence": "active"}, {"presence": 1}, {"presence": ["away"]}])
def test_bad_presence(room, bad):
    assert "presence" in room[0].fails("invalid_presence", "users.setPresence", **bad).messages


def test_strangers(environment, room, sockets):
    ann = room[0]
    stranger = environment.workspace().user()
    ann.fails("user_not_found", "users.getPresence", user=stranger.id)
    ann.fails("user_not_found", "users.getPresence", user="U0000000000")
    watcher = sockets(ann)
    watcher.send({"type": "presence_sub", "ids": [stranger.id, room[1].id]})
    watcher.send({"type": "presence_query", "ids": [stranger.id, room[1].id]})
    with stranger.socket():
        watcher.expect(about(room[1], "away"))
        watcher.request({"id": 1, "type": "ping"})
        assert not watcher.matching(lambda f: stranger.id in f.get("users", [f.get("user")]))


def test_a_new_list_replaces_the_old_one(room, sockets, workspace):
    ann, bob, _ = room
    cid = workspace.user()
    watcher = sockets(ann)
    watcher.send({"type": "presence_sub", "ids": [bob.id]})
    watcher.expect(about(bob, "away"))
    watcher.send({"type": "presence_sub", "ids": [cid.id]})
    watcher.expect(about(cid, "away"))
    sockets(bob), sockets(cid)
    watcher.expect(about(cid, "active"))
    assert not watcher.matching(about(bob, "active"))
    watcher.send({"type": "presence_sub", "ids": []})
    watcher.request({"id": 1, "type": "ping"})


def test_the_last_of_two_lists_counts(environment, room, sockets, workspace):
    """Behind something slow Postgres is asked over a second connection, which may answer before the first."""
    ann, bob, channel = room
    cid = workspace.user()
    watcher = sockets(ann)
    with ThreadPoolExecutor() as pool, environment.database() as database:
        with database.transaction():
            database.execute("LOCK TABLE messages")
            slow = pool.submit(ann.ok, "channels.history", channel=channel)
            wait_until(lambda: database.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0])
            watcher.send_at_once(*({"type": "presence_sub", "ids": [one.id]} for one in (bob, cid)))
            watcher.expect(about(cid, "away"))
        slow.result()
    watcher.send({"type": "presence_query", "ids": [bob.id]})
    watcher.expect(about(bob, "away"))
    sockets(cid)
    watcher.expect(about(cid, "active"))


def test_query(room, sockets, workspace):
    ann, bob, _ = room
    cid = workspace.user()
    sockets(bob)
    wait_until(lambda: presence(ann, bob) == "active")
    watcher = sockets(ann)
    watcher.send({"type": "presence_query", "ids": [bob.id, cid.id]})
    assert watcher.expect(about(bob, "active")) == {"type": "presence_change", "user": bob.id, "presence": "active"}
    watcher.expect(about(cid, "away"))
    sockets(cid)
    wait_until(lambda: presence(ann, cid) == "active")
    watcher.request({"id": 1, "type": "ping"})
    assert not watcher.matching(about(cid, "active")), "a query is no subscription"


@pytest.mark.parametrize("bad", [None, "U1", [1], ["x"], [{}], ["U0000000001"] * 1001])
def test_bad_subscriptions(room, sockets, bad):
    socket = sockets(room[0])
    socket.send({"type": "presence_sub", "ids": bad})
    assert "ids" in socket.expect({"type": "error"})["error"]["msg"]
    socket.request({"id": 1, "type": "ping"})


def test_a_burst_comes_in_few_frames(room, sockets, workspace):
    ann = room[0]
    crowd = workspace.users(40)
    watcher = sockets(ann)
    watcher.send({"type": "presence_sub", "ids": [one.id for one in crowd]})
    wait_until(lambda: all(watcher.matching(about(one, "away")) for one in crowd))
    before = len(watcher.frames)
    urls = [one.ok("rtm.connect")["url"] for one in crowd]
    started = time.monotonic()
    opened = [Socket(url) for url in urls]
    try:
        wait_until(lambda: all(watcher.matching(about(one, "active")) for one in crowd))
        assert len(watcher.frames) - before <= 2 + (time.monotonic() - started) / TOLD_EVERY_S
    finally:
        for socket in opened:
            socket.close()


def test_an_instance_that_dies_leaves_nobody_active(extra_instance, environment, room, sockets):
    ann, bob, _ = room
    here = extra_instance(presence_ttl_s=3)
    dying = environment.instance(presence_ttl_s=3)
    watcher = sockets(ann.at(here.url))
    watcher.send({"type": "presence_sub", "ids": [bob.id]})
    socket = bob.at(dying.url).socket()
    watcher.expect(about(bob, "active"))
    dying.kill()
    socket.close()
    wait_until(lambda: watcher.matching({"type": "presence_change"})[-1]["presence"] == "away", what="word of it")
    assert presence(ann, bob) == "away"


def test_what_redis_forgot_is_told_again(extra_instance, environment, room, sockets):
    ann, bob, _ = room
    here = extra_instance(presence_ttl_s=3)
    sockets(bob.at(here.url))
    wait_until(lambda: presence(ann, bob) == "active")
    environment.redis.cli("FLUSHALL")
    wait_until(lambda: presence(ann, bob) == "active")


def test_typing(environment, room, sockets, streams, workspace):
    ann, bob, channel = room
    outsider = sockets(workspace.user())
    mine, other_device = sockets(ann), sockets(ann.at(environment.urls[1]))
    there, stream = sockets(bob.at(environment.urls[1])), streams(bob)
    mine.send({"type": "typing", "id": 1, "channel": channel})
    for one in (there, stream):
        assert one.expect({"type": "user_typing"}) == {"type": "user_typing", "channel": channel, "user": ann.id}
    ts = ann.post(channel)
    for one in (mine, other_device):
        one.expect({"type": "message", "ts": ts})
        assert not one.matching({"type": "user_typing"}), "not to the one who types"
    outsider.request({"id": 1, "type": "ping"})
    assert not outsider.matching({"type": "user_typing"})


def test_typing_where_one_is_no_member(room, sockets, workspace):
    ann, bob, channel = room
    outsider, inside = sockets(workspace.user()), sockets(bob)
    for wrong in (channel, "C0000000000", "", None, 5):
        outsider.send({"type": "typing", "id": 1, "channel": wrong})
    outsider.send({"type": "typing"})
    outsider.request({"id": 2, "type": "ping"})
    ts = ann.post(channel)
    inside.expect({"type": "message", "ts": ts})
    assert not inside.matching({"type": "user_typing"}) and not outsider.matching({"type": "error"})


def test_typing_all_the_time(room, sockets):
    ann, bob, channel = room
    mine, there = sockets(ann), sockets(bob)
    started = time.monotonic()
    for _ in range(50):
        mine.send({"type": "typing", "channel": channel})
    mine.request({"id": 1, "type": "ping"})
    most = 1 + (time.monotonic() - started) / TYPING_EVERY_S
    there.expect({"type": "user_typing", "user": ann.id})  # by Redis, and so perhaps after what is posted later
    ts = ann.post(channel)
    there.expect({"type": "message", "ts": ts})
    assert 1 <= len(there.matching({"type": "user_typing"})) <= most
