# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: measurement, reference and target of each."""
import json
import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import (catch_up_rows, delivery_rows, hostile_rows, hot_rows, large_rows, locked_rows, long_rows, overload_rows,
                   push_rows, read_rows, retention_rows, snapshot_rows, strategy_rows as by_strategy, team_rows)
from bench.outcome import Outcome, against, alternate, middle

TURN_S = 2  # a run of a pair


@dataclass
class Row:
    """One line. `target` bounds `of`: the value itself or its ratio to the floor."""
    name: str
    what: str
    unit: str
    target: float
    measure: object  # measure(bench) -> Outcome
    of: str = "value"
    more_is_better: bool = False
    kafka: bool = False


class Bench:
    """Durations and repetitions, and results that rows pass on to later rows."""

    def __init__(self, rig, data, quick):
        self.rig = rig
        self.data = data
        self.runs = 1 if quick else 3
        self.seconds = 2 if quick else 4
        self.snapshot_s = 20 if quick else 120
        self.pairs = 1 if quick else 7  # of a turn each, short and many: the machine is not the same from one second to the next
        self.wait_pairs = 2 if quick else 5  # of percentiles, which one pair does not tell
        self.turn_s = TURN_S
        self.large = {}  # outcomes of the rows of large channels, which one set-up measures

    def add_group(self, name, channels):
        self.data["groups"][name] = channels
        self.rig.data.write_text(json.dumps(self.data))

    def load(self, command, **arguments):
        return self.rig.load(command, **{"seconds": self.seconds, **arguments})

    def turn(self, command, **arguments):
        """One run of a pair."""
        return self.load(command, **{"seconds": TURN_S, **arguments})


def posts_of(clients, key, bare=False):
    def measure(bench):
        rig = bench.rig
        rig.start_post_floor(bare)
        floors, ours = alternate(
            bench, lambda: bench.turn("posts", data=rig.floor_data, clients=clients),
            lambda: bench.turn("posts", clients=clients))
        rig.stop_floor()
        return against(floors, ours, key)
    return measure


def posts_with_kafka(clients):
    """Compares with Tidings without Kafka, with the broker running idle."""
    def run(bench, kafka):
        bench.rig.restart_tidings(kafka=kafka)
        return bench.turn("posts", clients=clients, warm_ms=1000)

    def measure(bench):
        bench.rig.start_kafka()
        floors, ours = alternate(bench, lambda: run(bench, False), lambda: run(bench, True))
        return against(floors, ours, "rate")
    return measure


def measure_refused(bench):
    """The posts of 32 clients beside 16 others whose posts are refused, at the highest rate of the latter."""
    def beside():
        with ThreadPoolExecutor(1) as pool:
            refused = pool.submit(bench.turn, "posts", clients=16, refused=1, warm_ms=0, seconds=TURN_S + 2)
            ours = bench.turn("posts", clients=32, warm_ms=1000)
            ours["refused"] = refused.result()["rate"]
        return ours

    alones, ours = alternate(bench, lambda: bench.turn("posts", clients=32, warm_ms=1000), beside)
    outcome = against(alones, ours, "rate")
    outcome.extra["refused_per_s"] = middle(ours, "refused")
    return outcome


def measure_idle_socket(bench):
    bench.rig.restart_tidings()
    bench.rig.resident_mb()
    runs = [bench.rig.load("idle", sockets=4000, pid=bench.rig.tidings.pid)]
    return Outcome(runs[0]["socket_kb"], [run["socket_kb"] for run in runs],
                   extra={"before_kb": runs[0]["before_kb"], "after_kb": runs[0]["after_kb"]},
                   fine=runs[0]["closed"] == 0)


def measure_rest(bench):
    def once():
        bench.rig.restart_tidings()
        return bench.rig.resident_mb()
    runs = [once() for _ in range(bench.runs)]
    return Outcome(statistics.median(runs), runs)


ROWS = [
    Row("post_64", "durable posts/s, 64 clients", "1/s", 0.72, posts_of(64, "rate"),
        of="ratio", more_is_better=True),
    Row("post_256", "durable posts/s, 256 clients", "1/s", 0.68, posts_of(256, "rate"),
        of="ratio", more_is_better=True),
    Row("post_1", "post with one client: p50", "ms", 1.3, posts_of(1, "p50_ms"), of="ratio"),
    Row("post_64_bare", "the same as post_64, against a floor that inserts only", "1/s", 0.56, posts_of(64, "rate", bare=True),
        of="ratio", more_is_better=True),
    Row("post_refused", "durable posts/s of 32 clients beside 16 whose posts are refused, against the same without these", "1/s", 0.9,
        measure_refused, of="ratio", more_is_better=True),
    Row("hot_channel", "durable posts/s to one channel, 64 clients, against 50 channels", "1/s", 0.7, hot_rows.measure_hot,
        of="ratio", more_is_better=True),
    Row("delivery_100", "post to 1,000 sockets' frames, 100 posts/s: p99 (p50 ≤ 1.5 of the floor's)", "ms", 2,
        delivery_rows.delivery_of(100), of="ratio"),
    Row("delivery_500", "the same at 500 posts/s", "ms", 2, delivery_rows.delivery_of(500), of="ratio"),
    Row("delivery_max", "highest rate of posts whose frames' p99 is < 100 ms", "1/s", 0.5,
        delivery_rows.measure_highest_rate, of="ratio", more_is_better=True),
    Row("mark_device", "mark to the other device, 200 marks/s beside 500 posts/s: p99 (p50 ≤ 1.5 of the floor's)", "ms", 2,
        delivery_rows.measure_mark_device, of="ratio"),
    Row("frames", "frames/s to 1,000 sockets", "1/s", 0.7, delivery_rows.measure_frames,
        of="ratio", more_is_better=True),
    Row("info_5000", "channels.info at 5,000/s: p99 (p50 ≤ 1.5 of the floor's)", "ms", 2, read_rows.compare_info, of="ratio"),
    Row("sync_50", "unread.sync of 200 users in 50 channels each, 64 clients: p50", "ms", 1.5, team_rows.measure_sync, of="ratio"),
    Row("sync_1000", "unread.sync of a user in 1,000 channels: p50", "ms", 1, read_rows.sync_of("few_reader"), of="ratio"),
    Row("sync_10000", "unread.sync of a user in 10,000 channels: p50", "ms", 1, read_rows.sync_of("many_reader"), of="ratio"),
    Row("sync_100000", "unread.sync of a user in 100,000 channels: p50", "ms", 1, read_rows.sync_of("huge_reader"), of="ratio"),
    Row("sync_100000_anew", "the same, first answer of an instance", "ms", 2, read_rows.measure_sync_anew, of="ratio"),
    Row("sync_delta_100000", "the same user, 10 channels changed since: p50", "ms", 2, read_rows.measure_sync_delta, of="ratio"),
    Row("catch_up_days", "events.sync of 50,000 events in 1,000 channels, in at most 60 calls", "s", 2, catch_up_rows.measure_days),
    Row("marks_64", "channels.mark, committed, 64 clients", "1/s", 0.5, read_rows.measure_marks,
        of="ratio", more_is_better=True),
    Row("bigchannel", "time per post in a channel of 100,000 members, against one of 10", "us", 1.2, by_strategy.big_channel_of("big"), of="ratio"),
    Row("bigchannel_500000", "the same with 500,000 members", "us", 1.2, by_strategy.measure_most, of="ratio"),
    *[Row(f"{strategy}_{size}", f"{strategy}: recipients/s of a channel of {size:,}", "1/s", 0.6,
          by_strategy.fan_out_of(strategy, size), of="ratio", more_is_better=True)
      for strategy in ("zset", "counter") for size in (100, 1000)],
    Row("zset_memory", "memory per unread message of a member, at the cap", "B", 16,
        by_strategy.measure_zset_memory),
    Row("bitmap_memory", "memory per member of a channel of 100,000", "bits", 1.2,
        by_strategy.measure_bitmap_memory),
    Row("rebuild", "pairs/s of a rebuild of Redis, while serving, against a bare copy", "1/s", 0.1,
        by_strategy.measure_rebuild, of="ratio", more_is_better=True),
    Row("sse_frames", "CPU per frame at 1,000 event streams, against sockets", "us", 1.2,
        by_strategy.measure_events, of="ratio"),
    Row("rate_limits", "CPU per post with rate limits, against without", "us", 1.05,
        by_strategy.measure_limits, of="ratio"),
    *[Row(f"strangers_{whose}", f"12 MB/s of large bodies, token: {whose}; p99 of the honest load, against without", "x", 2,
          hostile_rows.strangers_of(whose)) for whose in ("none", "unknown", "good")],
    Row("bytes", "1,000 simultaneous posts of 1 MB by one user; p99 of the honest load, against without", "x", 2,
        hostile_rows.measure_bytes),
    Row("long_calls", "calls of two users beside one user in 100,000 channels, among 500,000 users; their p99, against without", "x", 2,
        long_rows.measure_long_calls),
    Row("locked_row", "a channel's row locked for 20 s, and 50 posts that wait for it; p99 of the honest load elsewhere, against without", "x", 2,
        locked_rows.measure_locked_row),
    Row("snapshot", "posts/s after minutes with an open snapshot, against before it", "x", 0.85,
        snapshot_rows.measure_snapshot, more_is_better=True),
    Row("large_history", "pages of history/s of a channel of 1,000,000 messages, against 1,000", "1/s", 0.7,
        large_rows.large_of("large_history"), of="ratio", more_is_better=True),
    Row("large_sync", "unread.sync/s of its member, against 1,000", "1/s", 0.7, large_rows.large_of("large_sync"),
        of="ratio", more_is_better=True),
    Row("large_posts", "durable posts/s to it, against 1,000", "1/s", 0.9, large_rows.large_of("large_posts"),
        of="ratio", more_is_better=True),
    Row("retention", "a month of 2,000,000 messages dropped, beside posts and reads, against its inserts", "s", 2, retention_rows.retention_of(2_000_000), of="ratio"),
    Row("push_rate", "pushes/s over one connection to a provider that answers in 50 ms", "1/s", 5000, push_rows.measure_rate,
        more_is_better=True),
    Row("push_delay", "500 direct messages/s to 1,000 phones: from message to push, p99", "ms", 100, push_rows.measure_delay),
    Row("push_no_walk", "posts/s to 100,000 members, 90,000 of them with devices but not mentioned, against no devices", "1/s", 0.95,
        push_rows.measure_no_walk, of="ratio", more_is_better=True),
    Row("push_all", "a post to 1,000 members notified of all messages: until the last push arrives", "ms", 2000, push_rows.measure_all),
    Row("idle_socket", "memory of an idle socket", "KB", 4, measure_idle_socket),
    Row("rss_rest", "resident memory of an instance at rest", "MB", 40, measure_rest),
    Row("post_64_kafka", "durable posts/s with Kafka, 64 clients", "1/s", 0.7,
        posts_with_kafka(64), of="ratio", more_is_better=True, kafka=True),
    Row("delivery_100_kafka", "post to frame with Kafka, against without, 100 posts/s: p99 (p50 ≤ 1.5)", "ms", 2,
        delivery_rows.delivery_with_kafka(100), of="ratio", kafka=True),
    *[Row(f"overload_{times}x", f"posts/s when {times} times the rate of 256 clients is due, against that rate", "1/s", 0.8,
          overload_rows.overload_of(times), of="ratio", more_is_better=True) for times in (2, 10)],
    Row("reconnect_10000", "10,000 event streams cut at once: until all have caught up", "s", 15, overload_rows.measure_reconnect),
]
