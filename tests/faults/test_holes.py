# SPDX-License-Identifier: Apache-2.0
"""Events that an instance could not receive: sockets get all of them, or a gap."""
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.faults.proxy import Proxy
from tests.support.wait import wait_until
from tests.support.workspace import Workspace
from tools.redis_library import library

EVENTS, READS = 5, 2
NEVER_MS = 600_000


class Room:
    """A reader with a native and another socket on `instance`; the author is on another one."""

    def __init__(self, parts, instance):
        self.workspace = Workspace(parts.urls, parts.operator_token)
        self.instance = instance
        self.author, self.reader = self.workspace.users(2)
        self.channel = self.workspace.channel(self.author, self.reader)
        there = self.reader.at(instance.url)
        self.native, self.other = there.socket(native=True), there.socket()

    def post(self, count):
        """Posts, as much at once as can be, and returns the seqs."""
        def one(_):
            author = self.author.at(self.author.url)
            return author.ok("chat.postMessage", channel=self.channel, text="x")["seq"]

        with ThreadPoolExecutor(count) as pool:
            return sorted(pool.map(one, range(count)))

    def post_unseen(self, count):
        """The same while the instance is stopped, so that it cannot receive some of them first."""
        self.instance.kill(signal.SIGSTOP)
        try:
            return self.post(count)
        finally:
            self.instance.kill(signal.SIGCONT)

    def seqs(self, socket):
        return [frame["seq"] for frame in socket.matching({"type": "message", "channel": self.channel})]

    def close(self):
        self.native.close()
        self.other.close()


@pytest.fixture
def deaf(parts):
    """(proxy, room, instance): the instance finds missed events when it detects that its connections to Redis are dead, or by the periodic
    comparison of heads with Postgres, and then all of them at once."""
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", tail_check_ms=NEVER_MS,
                                  gap_events_max=EVENTS, gap_reads_max=READS)
        room = Room(parts, instance)
        try:
            first = room.post(1)
            for socket in (room.native, room.other):
                socket.expect({"type": "message", "seq": first[0]})
            yield proxy, room
        finally:
            proxy.set_mode("pass")
            room.close()
            assert instance.stop() == 0


def test_a_hole_at_the_bound_is_filled(deaf):
    proxy, room = deaf
    proxy.set_mode("blackhole")
    missed = room.post_unseen(EVENTS * READS)
    for socket in (room.native, room.other):
        socket.expect({"type": "message", "seq": missed[-1]})
        assert room.seqs(socket)[1:] == missed
        assert not socket.matching({"type": "gap"}) and socket.is_open


def test_a_larger_hole_is_a_gap(deaf):
    """Told to native sockets, which read on; others are closed, so that their clients read what there is."""
    proxy, room = deaf
    proxy.set_mode("blackhole")
    missed = room.post_unseen(EVENTS * READS + 1)
    gap = {"type": "gap", "channel": room.channel, "from_seq": missed[0], "to_seq": missed[-1]}
    room.native.expect(gap)
    assert room.other.wait_closed()[0] == 1012
    after = room.post(1)
    room.native.expect({"type": "message", "seq": after[0]})
    assert room.seqs(room.native)[1:] == after and room.seqs(room.other)[1:] == []


def test_an_edit_that_is_read_back(deaf):
    """Its frame is as channels.events has it: the message as it now is, and nothing of how it was."""
    proxy, room = deaf
    ts = room.author.post(room.channel, "before")
    for socket in (room.native, room.other):
        socket.expect({"type": "message", "ts": ts})
    proxy.set_mode("blackhole")
    seq = room.author.ok("chat.update", channel=room.channel, ts=ts, text="after")["seq"]
    event = room.author.ok("channels.events", channel=room.channel, after_seq=seq - 1)["events"][0]
    assert event["message"]["text"] == "after" and "previous_message" not in event
    for socket in (room.native, room.other):
        assert socket.expect({"type": "message", "seq": seq}) == event


def test_a_strategy_that_was_not_heard_of(deaf):
    """It has no seq that would reveal a gap."""
    proxy, room = deaf
    for number, strategy in enumerate(("bitmap", "sequence"), 1):
        room.author.ok("channels.setStrategy", channel=room.channel, strategy=strategy)
        wait_until(lambda n=number: len(room.native.matching({"type": "unread_changed"})) == n, what=f"{strategy} told")
        proxy.set_mode("blackhole")
    assert ["unread_count" in frame for frame in room.native.matching({"type": "unread_changed"})] == [False, True]


@pytest.fixture
def room(parts):
    """A room with an instance that compares heads often, behind a proxy."""
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", tail_check_ms=50)
        room = Room(parts, instance)
        room.proxy = proxy
        try:
            yield room
        finally:
            proxy.lose(None)
            room.close()
            assert instance.stop() == 0


def head_key(room):
    return f"channel-latest:{{{room.channel}}}"


def test_a_stale_head_in_redis_and_silence(parts, room):
    """The situation after a failover to a lagging replica: Redis has an old head, the message about the last post is lost, and no later
    event follows."""
    old = room.post(1)[0]
    for socket in (room.native, room.other):
        socket.expect({"type": "message", "seq": old})
    parts.redis.cli("HSET", head_key(room), "seq", old, "ord", 1, "deleted", "", "deleted_floor", 0)
    parts.redis.cli("FUNCTION", "LOAD", "REPLACE", library_that_moves_no_head())
    try:
        room.proxy.lose(f"channel-events:{{{room.channel}}}")
        last = room.post(1)[0]
        for socket in (room.native, room.other):
            socket.expect({"type": "message", "seq": last})
            assert room.seqs(socket) == [old, last]
        assert parts.redis.cli("HGET", head_key(room), "seq") == str(old)
        for url in (*parts.urls, room.instance.url):
            there = room.reader.at(url)
            assert there.unread(room.channel) == there.ok("unread.sync")["totals"]["unread_count"] == 2
    finally:
        parts.redis.cli("FUNCTION", "FLUSH")


@pytest.mark.parametrize("ahead", [3, 100_000])
def test_a_head_in_redis_that_is_ahead_of_postgres(parts, room, ahead):
    """The situation after a restore of Postgres from a backup: Postgres is right, and no gap is sent."""
    old = room.post(1)[0]
    for socket in (room.native, room.other):
        socket.expect({"type": "message", "seq": old})
    asked = questions(room.instance)
    parts.redis.cli("HSET", head_key(room), "seq", old + ahead)
    wait_until(lambda: questions(room.instance) > asked, what="a question to Postgres")
    new = room.post(3)
    for socket in (room.native, room.other):
        socket.expect({"type": "message", "seq": new[-1]})
        assert room.seqs(socket) == [old, *new]
        assert not socket.matching({"type": "gap"}) and socket.is_open
    assert room.reader.at(room.instance.url).unread(room.channel) == 4


def questions(instance):
    """The number of times the instance read Postgres because of messages from Redis, or missing ones."""
    lines = requests.get(f"{instance.url}/metrics", timeout=20).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines
               if line.startswith(("tidings_cache_fallbacks_total", "tidings_gaps_found_total")))


def library_that_moves_no_head():
    text = library()
    for name in ("channel_apply", "heads_apply"):
        moves = f"register('{name}', {name})"
        assert moves in text
        text = text.replace(moves, f"register('{name}', function() return 0 end)")
    return text


def test_a_join_that_is_heard_of_after_later_ones(room):
    """Instances may send joins in another order: a member found late receives all events since the join, and the others nothing twice."""
    second = room.workspace.user()
    there = second.at(room.instance.url)
    with there.socket(native=True) as early:
        room.proxy.lose(f"user-events:{{{room.reader.id}}}")
        channel = room.workspace.channel(room.author, room.reader)
        room.author.ok("channels.invite", channel=room.channel, users=[second.id])
        early.expect({"type": "member_joined_channel", "channel": room.channel})
        first = room.author.ok("chat.postMessage", channel=channel, text="x")["seq"]
        # What is lost is lost with all that comes at once with it: what follows is to come later.
        wait_until(lambda: channel.encode() in room.proxy.lost, what="the join lost")
        room.author.ok("channels.invite", channel=channel, users=[second.id])
        last = room.author.ok("chat.postMessage", channel=channel, text="x")["seq"]
        early.expect({"type": "message", "channel": channel, "seq": last})
        room.proxy.lose(None)
        with room.reader.at(room.instance.url).socket():
            after = room.author.ok("chat.postMessage", channel=channel, text="x")["seq"]
            for socket in (room.native, room.other, early):
                socket.expect({"type": "message", "channel": channel, "seq": after})
        for socket, joined in ((room.native, first - 1), (room.other, first - 1), (early, last - 1)):
            seqs = [f["seq"] for f in socket.matching({"channel": channel}) if "seq" in f]
            assert seqs == list(range(joined, after + 1))


@pytest.fixture
def cut_off(parts):
    """A room on an instance with separate proxies to Redis and to Postgres."""
    with Proxy("127.0.0.1", parts.redis.port) as redis, Proxy("127.0.0.1", parts.postgres.port) as postgres:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{redis.port}",
                                  database_url=postgres.of(parts.postgres.tcp_url), tail_check_ms=NEVER_MS,
                                  gap_timeout_ms=300)
        room = Room(parts, instance)
        try:
            yield redis, postgres, room
        finally:
            postgres.set_mode("pass")
            room.close()
            assert instance.stop() == 0


def test_a_gap_that_hides_a_kick(cut_off):
    """A kicked member receives no later events, although the instance cannot ask Postgres for the members."""
    redis, postgres, room = cut_off
    second = room.workspace.user()
    room.author.ok("channels.invite", channel=room.channel, users=[second.id])
    with second.at(room.instance.url).socket(native=True) as staying:
        seen = room.post(1)[0]
        for socket in (room.native, staying):
            socket.expect({"type": "message", "seq": seen})
        redis.lose("-events:{")
        postgres.set_mode("blackhole")
        room.author.ok("channels.kick", channel=room.channel, user=room.reader.id)
        kick = room.author.ok("channels.events", channel=room.channel, after_seq=seen)["events"][-1]["seq"]
        topics = [f"channel-events:{{{room.channel}}}".encode(), f"user-events:{{{room.reader.id}}}".encode()]
        wait_until(lambda: all(topic in redis.lost for topic in topics), what="the kick lost")
        redis.lose(None)
        after = room.post(3)
        for socket in (room.native, staying):
            socket.expect({"type": "gap", "channel": room.channel, "from_seq": kick, "to_seq": kick})
        postgres.set_mode("cut")
        postgres.set_mode("pass")
        staying.expect({"type": "message", "seq": after[-1]})
        assert room.seqs(staying) == [seen, *after]
        assert room.seqs(room.native) == [seen]
