# SPDX-License-Identifier: Apache-2.0
"""Rows about the strategies for unread counts, and the cost of a rebuild of Redis and of rate limits."""
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import strategies
from bench.outcome import Outcome, against, alternate
from bench.rig import LoadError
from tools.services import Redis

HUGE_MEMBERS = 500_000
HUGE_ID = "CMOST00001"
REBUILT_WITHIN_S = 120
SERVED_PER_S = 500  # channels.info beside a rebuild
SERVED_S = 8
LIMITED_PER_S = 10_000  # posts of the row of rate limits
# Nobody of these is anybody: a post does not look.
HUGE_SQL = """
INSERT INTO channels (id, workspace_id, name, creator, member_count)
SELECT 'CMOST00001', workspace_id, 'most', id, {members} + 10 FROM users WHERE id = '{creator}' ON CONFLICT DO NOTHING;
INSERT INTO channel_members (channel_id, user_id, member_seq)
SELECT 'CMOST00001', 'UMOST' || lpad(n::text, 6, '0'), 0 FROM generate_series(1, {members}) n
UNION ALL SELECT 'CMOST00001', unnest(ARRAY[{ten}]), 0 ON CONFLICT DO NOTHING;
"""
# A command in Redis' protocol a row; psql ends the line with the newline that is missing.
COPY_SQL = """
SELECT format(E'*4\\r\n$4\\r\nHSET\\r\n$%s\\r\n%s\\r\n$%s\\r\n%s\\r\n$%s\\r\n%s\\r', length(k), k, length(c), c, length(v), v)
FROM (SELECT 'read_cursor:{' || user_id || '}' AS k, channel_id AS c, format('%s %s %s %s %s %s', ts, seq, ord, own, posts, epoch) AS v
      FROM channel_members WHERE active) pairs
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


def make_most(bench):
    """A channel of 500,000 members, made when a row needs it, since all others would wait for it."""
    users = bench.data["users"]
    ten = ", ".join(f"'{user['id']}'" for user in users[:10])
    bench.rig.postgres.sql(HUGE_SQL.format(members=HUGE_MEMBERS, creator=users[0]["id"], ten=ten))


def measure_most(bench):
    make_most(bench)
    bench.add_group("most", [{"id": HUGE_ID, "members": list(range(10))}])
    return compare_posts(bench, "most")


def fan_out_of(strategy, size):
    def measure(bench):
        with strategies.private_redis() as redis:
            bare, ours = strategies.fan_out(redis, strategy, size, 50 * bench.runs)
        return Outcome(statistics.median(ours), ours, statistics.median(bare), bare)
    return measure


def measure_zset_memory(bench):
    """The bytes added by each message; a listpack grows in the steps of malloc."""
    with strategies.private_redis() as redis:
        key, full = (strategies.zset_bytes(redis, messages) for messages in (1, strategies.CAP))
    value = (full - key) / (strategies.CAP - 1)
    return Outcome(value, [value], extra={"key_bytes": key, "full_bytes": full})


def measure_bitmap_memory(bench):
    with strategies.private_redis() as redis:
        value = strategies.bitmap_bits(redis, 100_000)
    return Outcome(value, [value])


def rebuild_s(redis):
    redis.cli("FLUSHALL")
    began = time.monotonic()
    while redis.cli("EXISTS", "unread-built") != "1":
        if time.monotonic() > began + REBUILT_WITHIN_S:
            return float("inf")
        time.sleep(0.05)
    return time.monotonic() - began


def copy_s(rig, redis):
    """The same pairs from Postgres into an empty Redis: one HSET each, written by Postgres and sent as they come."""
    psql = subprocess.Popen(["psql", "-XqAt", "-v", "FETCH_COUNT=20000", "-c", COPY_SQL, rig.postgres.url], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE)
    began = time.monotonic()
    sent = subprocess.run(redis.cli_argv("--pipe"), stdin=psql.stdout, stdout=subprocess.DEVNULL, check=False)
    took = time.monotonic() - began
    psql.stdout.close()
    if psql.wait() != 0 or sent.returncode != 0:
        raise LoadError("the bare copy failed")
    return took


def beside_info(bench, work):
    """The result of `work` during 500 channels.info a second, and the outcome of those calls."""
    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(bench.load, "info", rate=SERVED_PER_S, seconds=SERVED_S)
        time.sleep(0.5)
        return work(), served.result()


def measure_rebuild(bench):
    """A Redis that has lost everything, and a bare copy of the same pairs to another, alternating; both with the same load."""
    rig = bench.rig
    pairs = int(rig.postgres.sql("SELECT count(*) FROM channel_members WHERE active"))

    def copy():
        with tempfile.TemporaryDirectory() as home:
            redis = Redis(Path(home))
            redis.start()
            try:
                took, _ = beside_info(bench, lambda: copy_s(rig, redis))
            finally:
                redis.stop()
        return {"rate": pairs / took}

    def rebuild():
        took, served = beside_info(bench, lambda: rebuild_s(rig.redis))
        return {**served, "rate": pairs / took, "served": served["rate"]}

    floors, ours = alternate(bench, copy, rebuild, bench.runs)
    outcome = against(floors, ours, "rate")
    outcome.fine = all(run["served"] >= 0.98 * SERVED_PER_S for run in ours)
    outcome.extra["pairs"] = pairs
    return outcome


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
    """CPU per post of all services, with and without counting calls. At a fixed rate: the cost of a post depends on the batch size, and so
    on the speed of the other side."""
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
