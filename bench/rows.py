# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: what each measures, against what, and what it must reach."""
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import hostile_rows, long_rows, overload_rows, retention_rows, snapshot_rows, strategy_rows as by_strategy
from bench.data import Api, HUGE_CHANNELS
from bench.outcome import Outcome, against, alternate, latencies, middle
from bench.rig import LoadError

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
    """How long and how often, and what rows hand on to later rows."""

    def __init__(self, rig, data, quick):
        self.rig = rig
        self.data = data
        self.runs = 1 if quick else 3
        self.seconds = 2 if quick else 4
        self.snapshot_s = 20 if quick else 120
        self.pairs = 1 if quick else 7  # of a turn each, short and many: the machine is not the same from one second to the next

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
    """Against Tidings without Kafka, with the broker idle beside it."""
    def run(bench, kafka):
        bench.rig.restart_tidings(kafka=kafka)
        return bench.turn("posts", clients=clients, warm_ms=1000)

    def measure(bench):
        bench.rig.start_kafka()
        floors, ours = alternate(bench, lambda: run(bench, False), lambda: run(bench, True))
        return against(floors, ours, "rate")
    return measure


def measure_refused(bench):
    """What 32 clients post beside 16 others whose posts are refused, as fast as these can ask."""
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


def is_whole(run):
    """Whether every frame came once and nothing was refused."""
    return run["lost"] == run["doubled"] == run["closed"] == run["refused"] == 0


def count_wrong(runs):
    return {name: sum(run[name] for run in runs)
            for name in ("lost", "doubled", "closed", "refused") if name in runs[0]}


def delivery_of(rate, p50_max=None, kafka=False):
    def measure(bench):
        if kafka:
            bench.rig.start_kafka()
            bench.rig.restart_tidings(kafka=True)
        runs = [bench.load("delivery", rate=rate, seconds=2 * bench.seconds, warm_ms=1000)
                for _ in range(bench.runs)]
        extra = {**latencies(runs), **count_wrong(runs),
                 "ack_p50_ms": middle(runs, "ack_p50_ms"), "rate": middle(runs, "rate")}
        fine = all(map(is_whole, runs)) and extra["rate"] >= 0.98 * rate
        if p50_max is not None:
            extra["p50_target_ms"] = p50_max
            fine = fine and extra["p50_ms"] <= p50_max
        return Outcome(extra["p99_ms"], [run["p99_ms"] for run in runs], fine=fine, extra=extra)
    return measure


def rate_holds(bench, rate):
    try:
        run = bench.load("delivery", rate=rate, warm_ms=500, clients=256)
    except LoadError:
        return False
    return run["p99_ms"] < 100 and is_whole(run) and run["rate"] >= 0.98 * rate


def highest_rate(bench, start):
    """Up or down by a quarter from `start`, then one step between the last two."""
    rate, holds = start, rate_holds(bench, start)
    step = 1.25 if holds else 0.8
    for _ in range(8):
        if rate_holds(bench, int(rate * step)) != holds:
            break
        rate = int(rate * step)
    good, bad = (rate, int(rate * step)) if holds else (int(rate * step), rate)
    between = (good + bad) // 2
    return between if rate_holds(bench, between) else good


def measure_highest_rate(bench):
    rates = [highest_rate(bench, 4000)]
    while len(rates) < bench.runs:
        rates.append(highest_rate(bench, rates[-1]))
    value = statistics.median(rates)
    return Outcome(value, rates, extra={"frames_per_second": value * 20})


def measure_mark_device(bench):
    runs = [bench.load("delivery", rate=500, marks=200, seconds=2 * bench.seconds, warm_ms=1000)
            for _ in range(bench.runs)]
    wanted = 0.9 * 200 * 2 * bench.seconds
    extra = {**latencies(runs, "mark_"), **count_wrong(runs),
             "marks_sent": middle(runs, "marks_sent"),
             "marks_unseen": sum(run["marks_unseen"] for run in runs)}
    fine = all(is_whole(run) and run["marks_unseen"] == 0 and run["mark_count"] >= wanted
               for run in runs)
    return Outcome(extra["p99_ms"], [run["mark_p99_ms"] for run in runs], fine=fine, extra=extra)


def measure_frames(bench):
    rig = bench.rig
    frame_bytes = round(bench.load("frames", seconds=1)["frame_bytes"])
    port = rig.start_floor("sockets", "--frame-bytes", frame_bytes)
    floors, ours = alternate(
        bench, lambda: rig.load("listen", url=f"ws://127.0.0.1:{port}", seconds=TURN_S),
        lambda: bench.turn("frames"))
    rig.stop_floor()
    return Outcome(middle(ours, "rate"), [run["rate"] for run in ours], middle(floors, "rate"),
                   [run["rate"] for run in floors],
                   fine=all(run["lost"] == run["doubled"] == run["closed"] == 0 for run in ours),
                   extra={"frame_bytes": frame_bytes, **count_wrong(ours),
                          "frames_per_read": middle(ours, "frames_per_read")})


def measure_info(bench):
    runs = [bench.load("info", rate=5000) for _ in range(bench.runs)]
    extra = {**latencies(runs), "rate": middle(runs, "rate")}
    return Outcome(extra["p99_ms"], [run["p99_ms"] for run in runs], extra=extra,
                   fine=extra["rate"] >= 0.98 * 5000)


def sync_of(reader):
    def measure(bench):
        runs = [bench.load("sync", user=bench.data[reader], seconds=2) for _ in range(bench.runs)]
        extra = {**latencies(runs), "reply_bytes": runs[0]["reply_bytes"]}
        return Outcome(extra["p50_ms"], [run["p50_ms"] for run in runs], extra=extra)
    return measure


def measure_sync_anew(bench):
    """The first answer of an instance that keeps nothing of the user."""
    def once():
        bench.rig.restart_tidings()
        return bench.load("sync", user=bench.data["huge_reader"], total=1, warm_ms=0)
    runs = [once() for _ in range(bench.runs)]
    return Outcome(middle(runs, "p50_ms"), [run["p50_ms"] for run in runs])


def measure_sync_delta(bench):
    api = Api(bench.rig.tidings.port)
    users = bench.data["users"]
    reader, poster = (users[bench.data[name]]["token"] for name in ("huge_reader", "poster"))
    token = api(reader, "unread.sync", limit=1)["sync_token"]

    def once(number):
        nonlocal token
        for place in range(10):
            channel = f"CHUGE{1 + (number * 7919 + place * 9973) % HUGE_CHANNELS:06}"
            api(poster, "chat.postMessage", channel=channel, text="x" * 100)
        began = time.monotonic()
        delta = api(reader, "unread.sync", since=token)
        took = 1000 * (time.monotonic() - began)
        token = delta["sync_token"]
        return took, len(delta["channels"])

    runs = [once(number) for number in range(20 * bench.runs)]
    times = [took for took, _ in runs]
    return Outcome(statistics.median(times), times, fine=all(changed == 10 for _, changed in runs),
                   extra={"p99_ms": sorted(times)[-1]})


def measure_marks(bench):
    runs = [bench.load("marks", depth=60 * bench.seconds) for _ in range(bench.runs)]
    return Outcome(middle(runs, "rate"), [run["rate"] for run in runs], extra=latencies(runs))


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
    Row("post_64", "durable posts/s, 64 clients", "1/s", 0.6, posts_of(64, "rate"),
        of="ratio", more_is_better=True),
    Row("post_256", "durable posts/s, 256 clients", "1/s", 0.6, posts_of(256, "rate"),
        of="ratio", more_is_better=True),
    Row("post_1", "post with one client: p50", "ms", 1.6, posts_of(1, "p50_ms"), of="ratio"),
    Row("post_64_bare", "the same as post_64, against a floor that inserts only", "1/s", 0.6, posts_of(64, "rate", bare=True),
        of="ratio", more_is_better=True),
    Row("post_refused", "durable posts/s of 32 clients beside 16 whose posts are refused, against without", "1/s", 0.9,
        measure_refused, of="ratio", more_is_better=True),
    Row("delivery_100", "post to 1,000 sockets' frames, 100 posts/s: p99", "ms", 4,
        delivery_of(100, p50_max=1.5)),
    Row("delivery_500", "the same at 500 posts/s: p99", "ms", 10, delivery_of(500)),
    Row("delivery_max", "highest rate of posts whose frames' p99 is < 100 ms", "1/s", 4000,
        measure_highest_rate, more_is_better=True),
    Row("mark_device", "mark to the other device, 200 marks/s beside 500 posts/s: p99", "ms", 25,
        measure_mark_device),
    Row("frames", "frames/s to 1,000 sockets", "1/s", 0.7, measure_frames,
        of="ratio", more_is_better=True),
    Row("info_5000", "channels.info at 5,000/s: p99", "ms", 3, measure_info),
    Row("sync_1000", "unread.sync of a user in 1,000 channels: p50", "ms", 3,
        sync_of("few_reader")),
    Row("sync_10000", "unread.sync of a user in 10,000 channels: p50", "ms", 30,
        sync_of("many_reader")),
    Row("sync_100000", "unread.sync of a user in 100,000 channels: p50", "ms", 150,
        sync_of("huge_reader")),
    Row("sync_100000_anew", "the same, first answer of an instance", "ms", 150,
        measure_sync_anew),
    Row("sync_delta_100000", "the same user, 10 channels changed since: p50", "ms", 10,
        measure_sync_delta),
    Row("marks_64", "channels.mark, committed, 64 clients", "1/s", 12000, measure_marks,
        more_is_better=True),
    Row("bigchannel_1000", "time a post in a channel of 1,000, against one of 10", "us", 1.2,
        by_strategy.big_channel_of("all"), of="ratio"),
    Row("bigchannel", "the same of 100,000", "us", 1.2, by_strategy.big_channel_of("big"), of="ratio"),
    Row("bigchannel_500000", "the same of 500,000", "us", 1.2, by_strategy.measure_most, of="ratio"),
    *[Row(f"{strategy}_{size}", f"{strategy}: recipients/s of a channel of {size:,}", "1/s", 0.6,
          by_strategy.fan_out_of(strategy, size), of="ratio", more_is_better=True)
      for strategy in ("zset", "counter") for size in (100, 1000)],
    Row("zset_memory", "memory of a message that a member has unread, at the cap", "B", 16,
        by_strategy.measure_zset_memory),
    Row("bitmap_memory", "memory of a member, of 100,000", "bits", 1.2,
        by_strategy.measure_bitmap_memory),
    Row("members_shard", "a shard of a channel's members (5,000) read from Redis: p99", "ms", 5,
        by_strategy.measure_shard),
    *[Row(f"info_{strategy}", f"{strategy}: channels.info at 5,000/s: p99", "ms", 3,
          by_strategy.info_of(strategy)) for strategy in ("zset", "counter", "bitmap")],
    Row("rebuild", "pairs/s of a rebuild of Redis, while serving", "1/s", 20000,
        by_strategy.measure_rebuild, more_is_better=True),
    Row("sse_frames", "CPU a frame at 1,000 event streams, against sockets", "us", 1.2,
        by_strategy.measure_events, of="ratio"),
    Row("rate_limits", "CPU a post with rate limits, against without", "us", 1.05,
        by_strategy.measure_limits, of="ratio"),
    *[Row(f"strangers_{whose}", f"12 MB/s of large bodies, token: {whose}; p99 of the honest load, against without", "x", 2,
          hostile_rows.strangers_of(whose)) for whose in ("none", "unknown", "good")],
    Row("bytes", "1,000 posts of 1 MB at once by one user; p99 of the honest load, against without", "x", 2,
        hostile_rows.measure_bytes),
    Row("long_calls", "two users' calls beside one user's in 100,000 channels; their p99, against without", "x", 2,
        long_rows.measure_long_calls),
    Row("snapshot", "posts/s after minutes under an open snapshot, against before it", "x", 0.85,
        snapshot_rows.measure_snapshot, more_is_better=True),
    Row("retention_500000", "a month of 500,000 messages dropped, beside posts and reads", "s", 15,
        retention_rows.retention_of(500_000)),
    Row("retention", "the same of 2,000,000", "s", 60, retention_rows.retention_of(2_000_000)),
    Row("idle_socket", "memory of an idle socket", "KB", 4, measure_idle_socket),
    Row("rss_rest", "resident memory of an instance at rest", "MB", 40, measure_rest),
    Row("post_64_kafka", "durable posts/s with Kafka, 64 clients", "1/s", 0.5,
        posts_with_kafka(64), of="ratio", more_is_better=True, kafka=True),
    Row("post_256_kafka", "durable posts/s with Kafka, 256 clients", "1/s", 0.5,
        posts_with_kafka(256), of="ratio", more_is_better=True, kafka=True),
    Row("delivery_100_kafka", "post to frame with Kafka, 100 posts/s: p99", "ms", 10,
        delivery_of(100, kafka=True), kafka=True),
    Row("delivery_500_kafka", "post to frame with Kafka, 500 posts/s: p99", "ms", 20,
        delivery_of(500, kafka=True), kafka=True),
    *[Row(f"overload_{times}x", f"posts/s kept when {times} times the rate of 256 clients is due, against that rate", "1/s", 0.8,
          overload_rows.overload_of(times), of="ratio", more_is_better=True) for times in (2, 10)],
    Row("reconnect_10000", "10,000 event streams cut at once: until all have everything", "s", 15, overload_rows.measure_reconnect),
    Row("stalled_sockets", "post to 900 sockets' frames beside 100 that stop reading: p99, against without", "x", 1.5,
        overload_rows.measure_stalled),
]
