# SPDX-License-Identifier: Apache-2.0
"""The effect of a snapshot that is held for long on posts: their cost at its end, against before it."""
import json
import subprocess

from bench.hostile_rows import say
from bench.outcome import Outcome, alternate, latencies, middle, ratio_of

CLIENTS = 64
PACE = 5000  # posts/s of the paced row
WORSE_MAX = 1.15
HOLD_SQL = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM channels; SELECT pg_sleep({seconds});"


def hold(postgres, seconds):
    """A session that holds a snapshot until it is killed, or for so long."""
    return subprocess.Popen(["psql", "-X", "-q", postgres.url, "-c", HOLD_SQL.format(seconds=seconds)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def turns(bench, **pace):
    """The floor, in a database without a held snapshot, and Tidings, alternating."""
    return alternate(bench, lambda: bench.turn("posts", data=bench.rig.floor_data, clients=CLIENTS, **pace),
                     lambda: bench.turn("posts", clients=CLIENTS, **pace))


def measure_snapshot(bench):
    bench.rig.start_post_floor(False)
    floors, before = turns(bench)
    holder = hold(bench.rig.postgres, 3600)
    try:
        long = bench.turn("posts", clients=CLIENTS, seconds=bench.snapshot_s)
        floors_after, after = turns(bench)
    finally:
        holder.kill()
        holder.wait()
        bench.rig.stop_floor()
    ratio = middle(after, "rate") / middle(floors_after, "rate") / (middle(before, "rate") / middle(floors, "rate"))
    return Outcome(ratio, [run["rate"] for run in after],
                   extra={**latencies(after), "before_p99_ms": middle(before, "p99_ms"), "before_rate": middle(before, "rate"),
                          "after_rate": middle(after, "rate"), "floor_before": middle(floors, "rate"),
                          "floor_after": middle(floors_after, "rate"), "posts": long["rate"] * bench.snapshot_s})


def measure_paced(bench):
    """At a rate that leaves the machine idle half of the time, after ten minutes of it: what users would see of a long `pg_dump`."""
    bench.rig.start_post_floor(False)
    floors, before = turns(bench, rate=PACE)
    holder = hold(bench.rig.postgres, 3600)
    try:
        bench.turn("posts", clients=CLIENTS, rate=PACE, seconds=bench.snapshot_paced_s)
        floors_after, after = turns(bench, rate=PACE)
    finally:
        holder.kill()
        holder.wait()
        bench.rig.stop_floor()
    rate = middle(after, "rate") / middle(before, "rate")
    p99 = ratio_of(floors_after, after, "p99_ms") / ratio_of(floors, before, "p99_ms")
    say(json.dumps({"snapshot_5000": {name: [run[name] for run in runs] for name in ("rate", "p50_ms", "p99_ms")
                                      for runs in [before + after]}, "floors": [run["p99_ms"] for run in floors + floors_after]}))
    return Outcome(rate, [run["rate"] for run in after], fine=p99 <= WORSE_MAX,
                   extra={**latencies(after), "p99_against_before": p99, "before_p99_ms": middle(before, "p99_ms")})
