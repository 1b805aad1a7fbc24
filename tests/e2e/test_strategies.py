# SPDX-License-Identifier: Apache-2.0
"""Every strategy is correct: from Redis where provable, otherwise from Postgres, at every moment."""
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.retention import forget_copies, housekeep, make_events_older
from tests.support.wait import wait_until
from tests.support.workspace import fresh_name
from tools.redis_library import function

STRATEGIES = ("sequence", "zset", "counter", "bitmap")
EVERY = pytest.mark.parametrize("strategy", STRATEGIES)
WALKED = pytest.mark.parametrize("strategy", ("zset", "counter"))
CAP = 100


class Room:
    """A channel with ann, who created it, and bob, who reads it."""

    def __init__(self, environment, workspace, strategy, *others):
        self.environment = environment
        self.ann, self.bob = workspace.users(2)
        self.channel = self.ann.ok("channels.create", name=fresh_name("room"), strategy=strategy)["channel"]["id"]
        self.ann.ok("channels.invite", channel=self.channel, users=[m.id for m in (self.bob, *others)])

    def redis(self, *command):
        return self.environment.redis.cli(*command).strip()

    def key(self, member):
        return f"unread:{{{member.id}}}:{self.channel}"

    def info(self, member=None):
        return (member or self.bob).ok("channels.info", channel=self.channel)["channel"]

    def shows(self, count, member=None):
        """channels.info at once, unread.sync and channels.history say that `count` are unread."""
        info, whose = self.info(member), member or self.bob
        agrees(info, count)
        entry = next(e for e in whose.ok("unread.sync")["channels"] if e["id"] == self.channel)
        agrees({**entry, "strategy_in_use": info["strategy_in_use"]}, count)
        history = whose.ok("channels.history", channel=self.channel, unreads=True, limit=1)
        assert history.get("unread_count_display") == info.get("unread_count_display")
        return info

    def is_counted(self):
        """Waits until the fan-out has brought all that happened to the counts in Redis. One that a reader put there first is
        known as of its reading; the next event may be brought together with those before it, and then nothing is known."""
        self.environment.wait_fanned_out(self.channel)

    def lists(self, *members):
        """Waits until Redis lists just these members."""
        key = f"channel:members:{{{self.channel}}}"
        wait_until(lambda: set(self.redis("SMEMBERS", key).split()) == {m.id for m in members}, what="the list of members")
        return key

    def is_kept(self, count=None, member=None):
        """Waits until Redis itself has the count."""
        def told():
            before = told_by_redis(self.environment)
            info = self.info(member)
            if count is not None:
                agrees(info, count)
            return told_by_redis(self.environment) > before
        wait_until(told, what="a count of Redis")


def agrees(shown, count):
    assert shown["has_unreads"] == (count > 0), (shown, count)
    if shown["strategy_in_use"] == "bitmap":
        assert "unread_count" not in shown and "unread_count_display" not in shown
        return
    cap = CAP if shown["strategy_in_use"] == "zset" else count
    assert (shown["unread_count"], shown["unread_count_display"]) == (min(count, cap), min(count, cap, 100)), (shown, count)
    assert shown["unread_capped"] == (count > cap), (shown, count)


def metric(environment, name):
    pages = [environment.client(url=url).page("/metrics").text for url in environment.urls]
    return sum(int(line.split()[-1]) for page in pages for line in page.splitlines() if line.startswith(name + " "))


def told_by_redis(environment):
    return metric(environment, "tidings_unread_from_redis_total")


@pytest.fixture(autouse=True)
def nothing_drifts(environment):
    """No trusted count of Redis was wrong."""
    before = metric(environment, "tidings_unread_drift_total")
    yield
    assert metric(environment, "tidings_unread_drift_total") == before


@pytest.fixture
def strategy():
    """The strategy of the room; tests choose others by parameters."""
    return "sequence"


@pytest.fixture
def room(environment, workspace, strategy):
    return Room(environment, workspace, strategy)


@EVERY
def test_a_life(room, strategy):
    ann, bob, channel = room.ann, room.bob, room.channel
    assert room.info()["strategy"] == room.info()["strategy_in_use"] == strategy
    ts = []
    for count in range(1, 7):
        ts.append(ann.post(channel))
        room.shows(count)
    if strategy != "sequence" and strategy != "bitmap":
        room.is_kept(6)
    agrees({**bob.ok("channels.mark", channel=channel, ts=ts[1]), "strategy_in_use": strategy}, 4)
    assert room.shows(4)["oldest_unread_ts"] == ts[2]
    bob.post(channel, "own")
    room.shows(4)
    room.shows(1, ann)
    ann.ok("chat.delete", channel=channel, ts=ts[3])
    room.shows(3)
    ts.append(ann.post(channel))
    room.shows(4)
    if strategy == "bitmap":
        bob.fails("strategy_unsupported", "channels.markMessages", channel=channel, ts=[ts[2]])
    else:
        bob.ok("channels.markMessages", channel=channel, ts=[ts[2]])
        room.shows(3)
        ann.post(channel)
        room.shows(4)
        bob.ok("channels.markUnread", channel=channel, ts=ts[0])
    bob.ok("channels.markUnread", channel=channel, ts=ts[0])
    room.shows(6 if strategy == "bitmap" else 7)
    bob.ok("channels.mark", channel=channel, ts="9999999999.999999")
    room.shows(0)
    if strategy != "sequence":
        room.is_kept(0)


@WALKED
def test_redis_counts_along(room):
    """After the first reading it is the fan-out alone that keeps the count."""
    room.is_kept(0)
    for count in range(1, 30):
        room.ann.post(room.channel)
        room.is_kept(count)
    for count in range(30, 40):
        room.ann.post(room.channel)
        room.bob.post(room.channel, "own")
    room.is_counted()
    room.is_kept(39)
    rebuilt = metric(room.environment, "tidings_cache_rebuilds_total")
    for count in range(40, 50):
        room.ann.post(room.channel)
    room.is_counted()  # who reads earlier asks for a rebuild
    room.is_kept(49)
    assert metric(room.environment, "tidings_cache_rebuilds_total") == rebuilt


@WALKED
def test_marks_are_kept(room):
    ts = [room.ann.post(room.channel) for _ in range(10)]
    room.is_kept(10)
    for left in range(9, -1, -1):
        room.bob.ok("channels.mark", channel=room.channel, ts=ts[9 - left])
        room.is_kept(left)
    room.ann.post(room.channel)
    room.is_kept(1)


@pytest.mark.parametrize("strategy", ["zset"])
def test_zset_reads_and_deletes_single_messages(room):
    ts = [room.ann.post(room.channel) for _ in range(10)]
    room.is_kept(10)
    room.bob.ok("channels.markMessages", channel=room.channel, ts=[ts[4], ts[9]])
    room.is_kept(8)
    room.ann.ok("chat.delete", channel=room.channel, ts=ts[0])
    room.is_kept(7)
    room.ann.ok("chat.delete", channel=room.channel, ts=ts[4])
    room.is_kept(7)
    assert room.info()["oldest_unread_ts"] == ts[1]
    kept = room.redis("ZRANGEBYSCORE", room.key(room.bob), "0", "+inf", "WITHSCORES").split()[1::2]
    assert kept == [stamp.replace(".", "") for n, stamp in enumerate(ts) if n not in (0, 4, 9)]


@pytest.mark.parametrize("strategy", ["zset"])
def test_zset_is_capped_and_filled_again(room):
    ts = [room.ann.post(room.channel) for _ in range(CAP)]
    room.is_kept(CAP)
    for count in range(1, 41):
        ts.append(room.ann.post(room.channel))
        room.shows(CAP + count)
    room.is_kept(CAP + 40)
    assert int(room.redis("ZCARD", room.key(room.bob))) <= 128
    assert room.redis("OBJECT", "ENCODING", room.key(room.bob)) == "listpack"
    room.bob.ok("channels.markMessages", channel=room.channel, ts=ts[-60:])
    room.shows(80)
    room.is_kept(80)
    room.bob.ok("channels.markUnread", channel=room.channel, ts=ts[0])
    room.shows(CAP + 40)
    room.bob.ok("channels.mark", channel=room.channel, ts=ts[30])
    room.shows(CAP + 9)
    room.bob.ok("channels.mark", channel=room.channel, ts=ts[60])
    room.is_kept(79)


def test_mentions_of_a_direct_conversation_are_not_capped(environment, workspace):
    """Each of its messages is one, also if zset has dropped it in Redis."""
    ann, bob = workspace.users(2)
    channel = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    with environment.database() as database:
        database.execute("UPDATE channels SET strategy = 'zset', strategy_in_use = 1, generation = generation + 1 WHERE id = %s", [channel])

    def are(count):
        info = bob.ok("channels.info", channel=channel)["channel"]
        entry = next(e for e in bob.ok("unread.sync")["ims"] if e["id"] == channel)
        for shown in info, entry:
            assert (shown["unread_count"], shown["unread_capped"], shown["mention_count"]) == (CAP, True, count), shown
        return info["strategy_in_use"] == "zset"

    def are_also_when_redis_tells(count):
        before = told_by_redis(environment)
        wait_until(lambda: are(count) and told_by_redis(environment) > before, what="a count of Redis")

    ts = [ann.post(channel) for _ in range(CAP + 30)]
    are_also_when_redis_tells(CAP + 30)
    ann.ok("chat.delete", channel=channel, ts=ts[5])  # the rows alone do not tell any more
    for _ in range(20):
        are(CAP + 29)


@pytest.mark.parametrize("strategy", ["bitmap"])
def test_bitmap(room):
    room.is_kept(0)
    key = f"channel:{{{room.channel}}}:read"
    assert room.redis("EXISTS", key) == "1"
    ts = room.ann.post(room.channel)
    wait_until(lambda: room.redis("EXISTS", key) == "0", what="the bits gone")
    room.shows(1)
    room.bob.ok("channels.mark", channel=room.channel, ts=ts)
    room.is_kept(0)
    assert int(room.redis("BITCOUNT", key)) == 1
    room.bob.ok("channels.markUnread", channel=room.channel, ts=ts)
    room.shows(1)
    room.bob.ok("channels.mark", channel=room.channel, ts=ts)
    room.ann.ok("chat.delete", channel=room.channel, ts=ts)
    room.shows(0)


@EVERY
def test_after_flushall(room, strategy):
    ts = [room.ann.post(room.channel) for _ in range(5)]
    room.shows(5)
    for count in (5, 6, 7):
        room.redis("FLUSHALL")
        room.shows(count)
        if strategy in ("zset", "counter"):
            room.is_kept(count)
        # A rebuild that has read a channel before a post and writes after the next wipe would let Redis know it as of then.
        wait_until(lambda: room.redis("EXISTS", "unread-built").strip() == "1", what="Redis built")
        ts.append(room.ann.post(room.channel))
        room.shows(count + 1)
    room.redis("FLUSHALL")
    room.bob.ok("channels.mark", channel=room.channel, ts=ts[-1])
    room.shows(0)


@EVERY
@pytest.mark.parametrize("deletes", (0, 1))
def test_retention_drops_what_is_unread(environment, room, deletes):
    """Also if the rows alone are not enough, because a message was deleted."""
    seqs = [room.ann.ok("chat.postMessage", channel=room.channel, text="x")["seq"] for _ in range(5)]
    ts = room.ann.post(room.channel)
    if deletes:
        room.ann.ok("chat.delete", channel=room.channel, ts=ts)
    with environment.database() as database:
        make_events_older(database, room.channel, seqs[1], unread_by=room.bob)
        forget_copies(environment)
        room.shows(6 - deletes)
        if room.info()["strategy_in_use"] in ("zset", "counter"):
            room.is_kept(6 - deletes)
        housekeep(database)
    room.shows(4 - deletes)


@WALKED
def test_what_somebody_else_wrote_is_not_believed(room):
    room.ann.post(room.channel)
    room.is_kept(1)
    for wrong in (("SET", room.key(room.bob), "7"), ("DEL", room.key(room.bob)), ("DEL", f"channel-walk:{{{room.channel}}}"),
                  ("DEL", f"channel:members:{{{room.channel}}}"), ("SET", room.key(room.ann), "x")):
        room.redis(*wrong)
        room.shows(1)
        room.bob.ok("channels.mark", channel=room.channel, ts=room.ann.post(room.channel))
        room.shows(0)
        room.ann.post(room.channel)
        room.is_kept(1)


@WALKED
def test_events_again_and_late(room, strategy):
    """The very calls that the fan-out made, made once more, change nothing."""
    room.is_kept(0)
    ts = [room.ann.post(room.channel) for _ in range(3)]
    room.is_kept(3)
    before = room.redis("HGETALL", f"channel-walk:{{{room.channel}}}")
    fields = dict(zip(before.split()[::2], before.split()[1::2]))
    walk = f"channel-walk:{{{room.channel}}}"
    for seq in range(1, int(fields["seq"]) + 1):
        bitmap = f"channel:{{{room.channel}}}:read"
        assert room.redis("FCALL", function("walk_begin"), "2", walk, bitmap, fields["gen"], str(seq), str(seq), "late", "1", "1") == ""
        if strategy == "counter":
            room.redis("FCALL", function("counter_walk"), "2", walk, room.key(room.bob), fields["build"], str(seq), "late",
                       "0", "1")
        else:
            room.redis("FCALL", function("zset_walk"), "2", walk, room.key(room.bob), fields["build"], str(seq), "late",
                       "0", "0", "1", "1999999999000000", "99", "0")
    assert room.redis("HGETALL", walk) == before
    room.is_kept(3)
    room.ann.post(room.channel)
    room.is_kept(4)
    assert room.info()["oldest_unread_ts"] == ts[0]


def test_set_strategy_and_who_may(environment, workspace):
    room = Room(environment, workspace, "auto", cid := workspace.user())
    assert (room.info()["strategy"], room.info()["strategy_in_use"]) == ("auto", "sequence")
    for who in (room.bob, cid):
        who.fails("restricted_action", "channels.setStrategy", channel=room.channel, strategy="zset")
    for who, family in ((room.ann, "channels"), (workspace.admin, "conversations")):
        reply = who.ok(f"{family}.setStrategy", channel=room.channel, strategy="counter")
        assert (reply["strategy"], reply["strategy_in_use"]) == ("counter", "counter")
        reply = who.ok(f"{family}.setStrategy", channel=room.channel, strategy="auto")
        assert (reply["strategy"], reply["strategy_in_use"]) == ("auto", "sequence")
    private = room.ann.ok("channels.create", name=fresh_name("room"), is_private=True)["channel"]["id"]
    workspace.admin.fails("channel_not_found", "channels.setStrategy", channel=private, strategy="zset")


@WALKED
def test_both_instances_count_along(environment, room, strategy):
    """Simultaneous posts to both reach Redis out of order; the count is still known there, unless one is very late."""
    posters = [room.ann, room.ann.at(environment.urls[1])]
    count = 0

    def stays_known():
        nonlocal count
        room.is_kept(count)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda poster: [poster.post(room.channel) for _ in range(20)], posters))
        count += 40
        room.is_counted()
        before = told_by_redis(environment)
        agrees(room.info(), count)
        return told_by_redis(environment) > before

    assert any(stays_known() for _ in range(12))


@pytest.mark.parametrize("chosen", ["sequence", "bitmap"])
@pytest.mark.parametrize("strategy", ["zset", "counter"])
def test_what_the_strategy_of_before_kept_goes(room, chosen):
    room.ann.post(room.channel)
    room.is_kept(1)
    assert room.redis("EXISTS", room.key(room.bob)) == "1"
    room.ann.ok("channels.setStrategy", channel=room.channel, strategy=chosen)
    wait_until(lambda: room.redis("EXISTS", room.key(room.bob)) == "0", what="the counts gone")
    assert room.info()["has_unreads"] is True


def test_native_sockets_are_told(environment, workspace, sockets):
    room = Room(environment, workspace, "sequence")
    native, plain = sockets(room.bob, native=True), sockets(room.bob)
    room.ann.post(room.channel)
    for strategy in ("bitmap", "zset"):
        room.ann.ok("channels.setStrategy", channel=room.channel, strategy=strategy)
        frame = native.expect({"type": "unread_changed", "channel": room.channel, "has_unreads": True})
        agrees({**frame, "strategy_in_use": "bitmap" if "unread_count" not in frame else "zset"}, 1)
        wait_until(lambda: any(("unread_count" in f) == (strategy == "zset")
                               for f in native.matching({"type": "unread_changed"})), what="R")
    assert not plain.matching({"type": "unread_changed"})


def test_auto_follows_the_number_of_members(environment, workspace, extra_instance):
    there = extra_instance(auto_zset_members=2, auto_counter_members=3, auto_bitmap_members=5, auto_interval_s=1)
    ann = workspace.user().at(there.url)
    channel = ann.ok("channels.create", name=fresh_name("room"))["channel"]["id"]

    def in_use():
        return ann.ok("channels.info", channel=channel)["channel"]["strategy_in_use"]

    assert in_use() == "zset"
    others = workspace.users(4)
    for other, strategy in zip(others, ("zset", "counter", "sequence", "bitmap")):
        ann.ok("channels.invite", channel=channel, users=[other.id])
        wait_until(lambda wanted=strategy: in_use() == wanted, what=strategy)
    others[0].ok("channels.leave", channel=channel)
    wait_until(lambda: in_use() == "sequence", what="sequence")


@pytest.mark.parametrize("strategy", ["counter"])
def test_members_in_redis(room, workspace):
    room.ann.post(room.channel)
    room.is_counted()
    room.is_kept(1)
    room.ann.post(room.channel)
    members = room.lists(room.ann, room.bob)
    assert 86000 < int(room.redis("TTL", members)) <= 86400
    cid = workspace.user()
    cid.ok("channels.join", channel=room.channel)
    wait_until(lambda: room.redis("SISMEMBER", members, cid.id) == "1", what="cid in it")
    room.is_kept(0, cid)
    room.ann.post(room.channel)
    room.is_kept(1, cid)
    room.ann.ok("channels.kick", channel=room.channel, user=cid.id)
    wait_until(lambda: room.redis("SISMEMBER", members, cid.id) == "0", what="cid out of it")
    assert room.redis("EXISTS", room.key(cid)) == "0"
    cid.ok("channels.join", channel=room.channel)
    room.shows(0, cid)
    room.ann.post(room.channel)
    room.shows(1, cid)


def test_lists_of_members_are_repaired(environment, workspace, extra_instance):
    room = Room(environment, workspace, "counter")
    for _ in range(2):
        room.ann.post(room.channel)
        room.is_counted()
        room.is_kept()
    members = room.lists(room.ann, room.bob)
    room.redis("SREM", members, room.bob.id)
    room.redis("SADD", members, "U0000000000")
    extra_instance(members_check_s=1)
    room.lists(room.ann, room.bob)
    room.shows(2)


def test_moving_under_load(environment, workspace):
    """During posts, every count that a caller sees was true at some moment between the request and the reply."""
    room = Room(environment, workspace, "sequence")
    posted, stop, wrong = [0, 0], threading.Event(), []  # begun and acknowledged

    def post():
        client = room.ann.at(room.ann.url)
        while not stop.is_set():
            posted[0] += 1
            client.post(room.channel)
            posted[1] += 1

    def read(url):
        client = room.bob.at(url)
        while not stop.is_set():
            least = posted[1]
            info = client.ok("channels.info", channel=room.channel)["channel"]
            most = posted[0]
            if "unread_count" not in info:
                good = info["has_unreads"] or most == 0 or least == 0
            else:
                cap = CAP if info["strategy_in_use"] == "zset" else most
                good = min(least, cap) <= info["unread_count"] <= min(most, cap)
            if not good:
                wrong.append((least, most, {n: v for n, v in info.items() if re.match("unread|has|strategy", n)}))

    threads = [threading.Thread(target=post)] + [threading.Thread(target=read, args=(url,)) for url in environment.urls * 2]
    for thread in threads:
        thread.start()
    try:
        for strategy in STRATEGIES * 3:
            room.ann.ok("channels.setStrategy", channel=room.channel, strategy=strategy)
            enough = posted[1] + 12
            wait_until(lambda wanted=enough: posted[1] >= wanted or wrong, what="posts")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:3]
    room.ann.ok("channels.setStrategy", channel=room.channel, strategy="counter")
    room.shows(posted[1])


def many_members(environment, workspace, channel, count):
    """Puts `count` new users into a channel, by SQL."""
    with environment.database() as database:
        database.execute("INSERT INTO users (id, workspace_id, name, real_name) SELECT 'U' || %(c)s || n, %(w)s, %(c)s || n, ''"
                         " FROM generate_series(1, %(n)s) n", {"c": channel, "w": workspace.id, "n": count})
        database.execute("INSERT INTO channel_members (channel_id, user_id, member_seq, number, ts, seq, ord)"
                         " SELECT id, 'U' || id || n, seq, numbers + n - 1, last_ts, seq, ord FROM channels,"
                         " generate_series(1, %(n)s) n WHERE id = %(c)s", {"c": channel, "n": count})
        database.execute("UPDATE channels SET member_count = member_count + %(n)s, numbers = numbers + %(n)s WHERE id = %(c)s",
                         {"c": channel, "n": count})
        database.execute("ANALYZE users, channels, channel_members, outbox")


def test_a_list_in_shards(environment, workspace, extra_instance):
    room = Room(environment, workspace, "counter")
    room.is_kept(0)
    many_members(environment, workspace, room.channel, 12000)
    room.redis("DEL", f"channel:members:{{{room.channel}}}")
    room.ann.post(room.channel)
    wait_until(lambda: room.redis("HGET", f"unread:{{U{room.channel}12000}}:{room.channel}", "n") == "1", what="the last member")
    room.is_kept(1)
    shards = [int(room.redis("SCARD", f"channel:members:{{{room.channel}}}:shard:{n}")) for n in range(4)]
    assert shards == [5001, 5001, 2003, 0]  # each with its mark
    cid = workspace.user()
    cid.ok("channels.join", channel=room.channel)
    room.ann.post(room.channel)
    room.is_kept(1, cid)
    room.is_kept(2)
    shard = f"channel:members:{{{room.channel}}}:shard:1"
    room.redis("SADD", shard, "U0000000000")
    extra_instance(members_check_s=1)
    wait_until(lambda: room.redis("SCARD", shard) == "5001", what="the list repaired")


def test_a_shard_that_is_lost(environment, workspace):
    room = Room(environment, workspace, "counter")
    many_members(environment, workspace, room.channel, 12000)
    last = f"unread:{{U{room.channel}12000}}:{room.channel}"
    shard = f"channel:members:{{{room.channel}}}:shard:2"
    room.redis("DEL", f"channel:members:{{{room.channel}}}")
    room.ann.post(room.channel)
    wait_until(lambda: room.redis("HGET", last, "n") == "1", what="the last member")
    room.redis("DEL", shard)
    room.ann.post(room.channel)  # finds that it is lost: nobody's count is known after it, until it is asked for
    room.is_counted()
    room.shows(2)
    room.is_kept(2)
    room.ann.post(room.channel)
    wait_until(lambda: room.redis("SCARD", shard) == "2003", what="the shard, built anew")
    room.is_kept(3)


def wipe_again_and_again(environment, key, stop):
    with socket.create_connection(("127.0.0.1", environment.redis.port)) as redis:
        while not stop.wait(0.003):
            redis.sendall(f"DEL {key}\r\n".encode())
            redis.recv(100)


def test_a_list_that_is_evicted_while_it_is_built(environment, workspace):
    """Members missing from the rest of the list are not counted, and their counts are not trusted."""
    cid = min(workspace.users(8), key=lambda member: member.id)  # early in the list
    room = Room(environment, workspace, "counter", cid)
    many_members(environment, workspace, room.channel, 3000)
    room.ann.ok("chat.delete", channel=room.channel, ts=room.ann.post(room.channel))
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(wipe_again_and_again, environment, f"channel:members:{{{room.channel}}}", stop)
        try:
            for count in range(40):
                agrees(room.info(cid), count)
                room.is_counted()
                room.ann.post(room.channel)
        finally:
            stop.set()


def test_a_number_that_is_another_members_before_the_leave_is_told(environment, workspace):
    """An instance died between: who comes back is in one shard, and counted once."""
    room = Room(environment, workspace, "counter")
    many_members(environment, workspace, room.channel, 12000)
    low, [cid, dan] = f"U{room.channel}100", workspace.users(2)
    cid.ok("channels.join", channel=room.channel)
    room.redis("DEL", f"channel:members:{{{room.channel}}}")
    room.ann.post(room.channel)
    shard = f"channel:members:{{{room.channel}}}:shard:2"
    wait_until(lambda: room.redis("SISMEMBER", shard, cid.id) == "1", what="the list")
    with environment.database() as database:
        for method, who in (("leave", cid), ("join", dan)):
            database.execute(f"SELECT channels_{method}(%s, %s, %s, %s)", [fresh_name("row"), workspace.id, who.id, room.channel])
    room.is_counted()
    assert (room.redis("SISMEMBER", shard, cid.id), room.redis("SISMEMBER", shard, dan.id)) == ("0", "1")
    room.ann.ok("channels.kick", channel=room.channel, user=low)
    cid.ok("channels.join", channel=room.channel)
    room.ann.ok("chat.delete", channel=room.channel, ts=room.ann.post(room.channel))
    room.is_counted()
    room.is_kept(0, cid)
    room.ann.post(room.channel)
    room.is_counted()
    room.is_kept(1, cid)


def test_a_channel_of_500_000(environment, workspace):
    room = Room(environment, workspace, "auto")
    many_members(environment, workspace, room.channel, 500_000)
    ts = [room.ann.post(room.channel) for _ in range(10)]
    assert room.shows(10)["num_members"] == 500_002
    room.ann.ok("channels.setStrategy", channel=room.channel, strategy="bitmap")
    room.shows(10)
    room.bob.ok("channels.mark", channel=room.channel, ts=ts[-1])
    room.is_kept(0)
    room.ann.post(room.channel)
    room.shows(1)
    room.ann.ok("channels.setStrategy", channel=room.channel, strategy="sequence")
    room.bob.ok("channels.leave", channel=room.channel)
    assert room.info(room.ann)["num_members"] == 500_001
    assert room.bob.ok("unread.sync")["channels"] == []
