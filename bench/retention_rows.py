# SPDX-License-Identifier: Apache-2.0
"""Rows about retention: a month of messages is dropped beside 500 posts/s to 1,000 sockets and 500 channels.info/s."""
import json
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from bench.outcome import Outcome
from tools.services import Tidings

EACH = 1000  # messages of a channel
MEMBERS = 50  # of a channel; all of them write, and nobody has read anything
RATE = 500
TURN_S = 8  # the server closes a connection that has not been used for 10 s
DROPPED_WITHIN_S = 180
NOTICED_MS = 250  # nobody waits longer
P99_FLOOR_MS = 20  # what is faster is not noticed
# All in the month that began some 150 days ago. A quarter of the messages mention somebody, a quarter were edited; there are half as many
# keys of posts again as messages, all of them too old.
MONTH_SQL = """
CREATE TEMP TABLE month AS SELECT (extract(epoch FROM date_trunc('month', now() - interval '150 days')) * 1000000)::bigint AS began;
SELECT message_partition_make(to_timestamp((SELECT began FROM month) / 1e6));
CREATE TEMP TABLE wanted AS SELECT {each} AS each;

INSERT INTO channels (id, workspace_id, name, creator, member_count, seq, ord, last_ts, updated_ts, latest_ts, latest_user, latest_preview)
SELECT 'C{tag}' || lpad(c::text, 6, '0'), '{workspace}', lower('{tag}-') || c, '{creator}', {members}, each + each / 4, each,
       began + each * 1000000 + c, began + each * 1000000 + c, began + each * 1000000 + c, '{creator}', 'x'
FROM generate_series(1, {channels}) c, month, wanted;
INSERT INTO channel_members (channel_id, user_id, member_seq, posts)
SELECT 'C{tag}' || lpad(c::text, 6, '0'), 'U{tag}' || lpad(u::text, 4, '0'), 0, each / {members}
FROM generate_series(1, {channels}) c, generate_series(1, {members}) u, wanted;
INSERT INTO messages (channel_id, ts, seq, ord, user_id, author_posts, counted, body)
SELECT 'C{tag}' || lpad(c::text, 6, '0'), began + n * 1000000 + c, n, n, 'U{tag}' || lpad((1 + n % {members})::text, 4, '0'),
       (n + {members} - 1) / {members}, true, repeat('x', 100)
FROM wanted, generate_series(1, each) n, generate_series(1, {channels}) c, month;
INSERT INTO mentions (channel_id, ts, user_id, author, thread_ts, counted, sources)
SELECT 'C{tag}' || lpad(c::text, 6, '0'), began + n * 4000000 + c, 'U{tag}' || lpad((1 + (4 * n + 1) % {members})::text, 4, '0'),
       'U{tag}' || lpad((1 + 4 * n % {members})::text, 4, '0'), 0, true, 1
FROM wanted, generate_series(1, each / 4) n, generate_series(1, {channels}) c, month;
INSERT INTO changes (channel_id, seq, kind, message_ts, user_id, event_ts)
SELECT 'C{tag}' || lpad(c::text, 6, '0'), each + n, 'edit', began + n * 1000000 + c, 'U{tag}0001', began + n * 1000000 + c
FROM wanted, generate_series(1, each / 4) n, generate_series(1, {channels}) c, month;
INSERT INTO message_keys (user_id, key, channel_id, ts, digest, created)
SELECT 'U{tag}' || lpad((1 + n % {members})::text, 4, '0'), '{tag}' || n, 'C{tag}000001', 0, md5(n::text), now() - interval '30 days'
FROM generate_series(1, {messages} * 3 / 2) n;
UPDATE channel_members SET mention_ts = 9000000000000000 WHERE channel_id LIKE 'C{tag}%';
"""
# Nothing is left when this is 0.
LEFT_SQL = """
SELECT (SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'messages'::regclass
        AND to_date(right(c.relname, 7), 'YYYY_MM') < now() - interval '130 days')
     + (SELECT count(*) FROM (SELECT 1 FROM message_keys WHERE created < now() - interval '8 days' LIMIT 1) k)
     + (SELECT count(*) FROM (SELECT 1 FROM changes WHERE channel_id LIKE 'C{tag}%' LIMIT 1) h)
     + (SELECT count(*) FROM month_expiring)
"""
COUNTS_SQL = """
SELECT count(*) FILTER (WHERE c.ord - m.ord - (m.posts - m.own) <> 0) FROM channel_members m JOIN channels c ON c.id = m.channel_id
WHERE c.id LIKE 'C{tag}%'
"""
FUNCTIONS_SQL = "SELECT functions FROM versions_in_use ORDER BY made_at DESC LIMIT 1"


def make_month(bench, tag, messages):
    """Returns how long the plain inserts took."""
    postgres = bench.rig.postgres
    poster = bench.data["users"][bench.data["poster"]]["id"]
    workspace = postgres.sql(f"SELECT workspace_id FROM users WHERE id = '{poster}'")
    functions = postgres.sql(FUNCTIONS_SQL)
    text = MONTH_SQL.format(tag=tag, workspace=workspace, creator=poster, messages=messages, channels=messages // EACH, each=EACH,
                            members=MEMBERS)
    began = time.monotonic()
    postgres.sql(f"SET search_path = {functions}, public; {text}")
    made_s = time.monotonic() - began
    postgres.sql("ANALYZE channels, channel_members, mentions, changes, message_keys")
    return made_s


def honest_load(bench, seconds):
    """The latencies of simultaneous posts and channels.info: {"posts": …, "info": …}."""
    with ThreadPoolExecutor(2) as pool:
        runs = {name: pool.submit(bench.rig.load, command, rate=RATE, seconds=seconds, warm_ms=500)
                for name, command in (("posts", "delivery"), ("info", "info"))}
        return {name: run.result() for name, run in runs.items()}


class Dropping:
    """An instance that has just been started, as it does upkeep at once; until the month, and the keys, are gone."""

    def __init__(self, bench, tag):
        rig = bench.rig
        self.rig = rig
        self.left_sql = LEFT_SQL.format(tag=tag)
        self.other = Tidings(rig.home / f"retention-{tag}", rig.programs / "tidings", {**rig.environment, "TIDINGS_LOG_LEVEL": "info"})
        self.took_s = None
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.other.start()
        self.began = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.other.stop()
        self.thread.join()

    def _watch(self):
        while self.other.pid is not None and time.monotonic() < self.began + DROPPED_WITHIN_S:
            if self.rig.postgres.sql(self.left_sql) == "0":
                self.took_s = time.monotonic() - self.began
                return
            time.sleep(0.5)

    def is_over(self):
        return not self.thread.is_alive()

    def told(self):
        """The report in the instance's log."""
        lines = [json.loads(line) for line in self.other.log.read_text().splitlines() if line.startswith("{")]
        return next((line["message"] for line in lines if " is dropped: " in line.get("message", "")), "dropped by both instances")


def over_turns(turns, name, key):
    """The middle one of the percentiles, the highest of the longest waits."""
    return (max if "max" in key else statistics.median)(turn[name][key] for turn in turns)


def is_unnoticed(before, during):
    """Whether other calls were unaffected."""
    def fine(name, prefix):
        p99, longest = prefix + "p99_ms", prefix + "max_ms"
        return (over_turns(during, name, p99) <= max(P99_FLOOR_MS, 2 * over_turns(before, name, p99))
                and over_turns(during, name, longest) <= max(NOTICED_MS, over_turns(before, name, longest)))
    whole = all(turn["posts"][key] == 0 for turn in during for key in ("refused", "lost", "doubled", "closed"))
    return whole and fine("posts", "ack_") and fine("posts", "") and fine("info", "")


def retention_of(messages):
    tag = f"R{messages // 1000}K"

    def measure(bench):
        made_s = make_month(bench, tag, messages)
        bench.rig.settle()
        before = [honest_load(bench, TURN_S) for _ in range(2)]
        during = []
        with Dropping(bench, tag) as dropping:
            while not dropping.is_over():
                during.append(honest_load(bench, TURN_S))
            told = dropping.told() if dropping.took_s else "not dropped"
        wrong = int(bench.rig.postgres.sql(COUNTS_SQL.format(tag=tag)))
        extra = {f"{when}_{name}_{key}": over_turns(turns, name, key) for when, turns in (("before", before), ("during", during))
                 for name, keys in (("posts", ("ack_p99_ms", "ack_max_ms", "p99_ms", "max_ms")), ("info", ("p99_ms", "max_ms"))) for key in keys}
        extra.update(refused=sum(turn["posts"]["refused"] for turn in during), wrong_counts=wrong, told=told,
                     p99_ms=over_turns(during, "posts", "ack_p99_ms"))
        fine = dropping.took_s is not None and wrong == 0 and is_unnoticed(before, during)
        took_s = dropping.took_s or DROPPED_WITHIN_S
        return Outcome(took_s, [took_s], made_s, [made_s], fine=fine, extra=extra)
    return measure
