# SPDX-License-Identifier: Apache-2.0
"""The effect of a snapshot that is held for long on posts: their cost at its end, against before it."""
import subprocess

from bench.outcome import Outcome, alternate, latencies, middle

CLIENTS = 64
HOLD_SQL = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM channels; SELECT pg_sleep({seconds});"


def hold(postgres, seconds):
    """A session that holds a snapshot until it is killed, or for so long."""
    return subprocess.Popen(["psql", "-X", "-q", postgres.url, "-c", HOLD_SQL.format(seconds=seconds)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def turns(bench):
    """The floor, in a database without a held snapshot, and Tidings, alternating."""
    return alternate(bench, lambda: bench.turn("posts", data=bench.rig.floor_data, clients=CLIENTS),
                     lambda: bench.turn("posts", clients=CLIENTS))


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
