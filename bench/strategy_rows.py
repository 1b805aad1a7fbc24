# SPDX-License-Identifier: Apache-2.0
"""Rows about how channels keep unread counts, and what a rebuild of Redis and rate limits cost."""
import statistics
import threading
import time

from bench import strategies
from bench.data import Api
from bench.outcome import Outcome, against, alternate, latencies

HUGE_MEMBERS = 500_000
REBUILT_WITHIN_S = 120
LIMITED_PER_S = 10_000  # posts of the row of rate limits
# Nobody of these is anybody: a post does not look.
HUGE_SQL = """
INSERT INTO channels (id, workspace_id, name, creator, member_count)
SELECT 'CMOST00001', workspace_id, 'most', id, {members} + 10 FROM users WHERE id = '{creator}' ON CONFLICT DO NOTHING;
INSERT INTO channel_members (channel_id, user_id, member_seq)
SELECT 'CMOST00001', 'UMOST' || lpad(n::text, 6, '0'), 0 FROM generate_series(1, {members}) n
UNION ALL SELECT 'CMOST00001', unnest(ARRAY[{ten}]), 0 ON CONFLICT DO NOTHING;
"""


def compare_posts(bench, group):
    """Time a post at 16 clients, of a channel of ten and of another."""
    small, big = alternate(bench, lambda: bench.turn("posts", group="ten", clients=16),
                           lambda: bench.turn("posts", group=group, clients=16))
    for run in small + big:
        run["us"] = 1e6 / run["rate"]
    return against(small, big, "us")


def big_channel_of(group):
    return lambda bench: compare_posts(bench, group)


def measure_most(bench):
    """Its channel is made here, since all others would wait for it."""
    users = bench.data["users"]
    ten = ", ".join(f"'{user['id']}'" for user in users[:10])
    bench.rig.postgres.sql(HUGE_SQL.format(members=HUGE_MEMBERS, creator=users[0]["id"], ten=ten))
    bench.add_group("most", [{"id": "CMOST00001", "members": list(range(10))}])
    return compare_posts(bench, "most")


def fan_out_of(strategy, size):
    def measure(bench):
        with strategies.private_redis() as redis:
            bare, ours = strategies.fan_out(redis, strategy, size, 50 * bench.runs)
        return Outcome(statistics.median(ours), ours, statistics.median(bare), bare)
    return measure


def measure_zset_memory(bench):
    """What each message adds; a listpack grows in steps of malloc's."""
    with strategies.private_redis() as redis:
        key, full = (strategies.zset_bytes(redis, messages) for messages in (1, strategies.CAP))
    value = (full - key) / (strategies.CAP - 1)
    return Outcome(value, [value], extra={"key_bytes": key, "full_bytes": full})


def measure_bitmap_memory(bench):
    with strategies.private_redis() as redis:
        value = strategies.bitmap_bits(redis, 100_000)
    return Outcome(value, [value])


def measure_shard(bench):
    with strategies.private_redis() as redis:
        times = sorted(strategies.shard_read_ms(redis, 1000 * bench.runs))
    p50, p99 = (times[len(times) * part // 100] for part in (50, 99))
    return Outcome(p99, [p99], extra={"p50_ms": p50, "p99_ms": p99})


def info_of(strategy):
    """channels.info of the channels of `small`, moved to a strategy for as long."""
    def choose(bench, chosen):
        api, users = Api(bench.rig.tidings.port), bench.data["users"]
        for channel in bench.data["groups"]["small"]:
            creator = users[channel["members"][0]]["token"]
            api(creator, "channels.setStrategy", channel=channel["id"], strategy=chosen)

    def measure(bench):
        choose(bench, strategy)
        runs = [bench.load("info", rate=5000, warm_ms=1000) for _ in range(bench.runs)]
        choose(bench, "auto")
        extra = {**latencies(runs), "rate": min(run["rate"] for run in runs)}
        return Outcome(extra["p99_ms"], [run["p99_ms"] for run in runs], extra=extra, fine=extra["rate"] >= 0.98 * 5000)
    return measure


def rebuild_s(redis):
    redis.cli("FLUSHALL")
    began = time.monotonic()
    while redis.cli("EXISTS", "unread-built") != "1":
        if time.monotonic() > began + REBUILT_WITHIN_S:
            return float("inf")
        time.sleep(0.05)
    return time.monotonic() - began


def measure_rebuild(bench):
    """A Redis that has lost everything, while channels.info is asked 500 times a second."""
    rig, served, rates = bench.rig, [], []
    pairs = int(rig.postgres.sql("SELECT count(*) FROM channel_members WHERE active"))
    for _ in range(bench.runs):
        thread = threading.Thread(target=lambda: served.append(bench.load("info", rate=500, seconds=8)))
        thread.start()
        time.sleep(0.5)
        rates.append(pairs / rebuild_s(rig.redis))
        thread.join()
    fine = len(served) == len(rates) and all(run["rate"] >= 0.98 * 500 for run in served)
    return Outcome(statistics.median(rates), rates, fine=fine, extra={"pairs": pairs, **(latencies(served) if served else {})})


def measure_events(bench):
    """Tidings' CPU a frame at event streams, against WebSockets. One post at a time: else the side whose posts happen to be
    committed together sends several frames at once, which costs half."""
    def run(events):
        before = bench.rig.tidings_cpu_s()
        frames = bench.turn("frames", events=events, window=1)
        return {**frames, "us": 1e6 * (bench.rig.tidings_cpu_s() - before) / frames["frames"]}

    floors, ours = alternate(bench, lambda: run(0), lambda: run(1))
    runs, floor_runs = ([run["us"] for run in side] for side in (ours, floors))
    return Outcome(statistics.median(runs), runs, statistics.median(floor_runs), floor_runs,
                   fine=all(run["lost"] == run["doubled"] == run["closed"] == 0 for run in ours))


def measure_limits(bench):
    """CPU a post of all that serves it, with calls counted and without. At a fixed rate: what a post costs depends on how many go
    together, and with it on how fast the other side is."""
    def run(settings):
        bench.rig.restart_tidings(settings=settings)
        bench.load("posts", seconds=1)
        before = bench.rig.cpu_s()
        posts = bench.turn("posts", warm_ms=0, rate=LIMITED_PER_S)
        return {"us": 1e6 * (bench.rig.cpu_s() - before) / posts["sent"]}

    off = {"TIDINGS_RATE_LIMIT": "0", "TIDINGS_RATE_CHANNEL": "0"}
    floors, ours = alternate(bench, lambda: run(off), lambda: run(None))
    runs, floor_runs = ([run["us"] for run in side] for side in (ours, floors))
    return Outcome(statistics.median(runs), runs, statistics.median(floor_runs), floor_runs)
