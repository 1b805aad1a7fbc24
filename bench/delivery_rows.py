# SPDX-License-Identifier: Apache-2.0
"""Rows about how long a post, or a mark, takes to others' sockets: against a floor that commits one row and writes one frame."""
from bench.outcome import Outcome, against, against_waits, alternate, middle
from bench.rig import LoadError

WRONG = ("lost", "doubled", "closed", "refused")
MARKS = 200  # a second
MARKED_POSTS = 500
MAX_P99_MS = 100
START_RATE = 6000


def is_whole(run):
    """Whether every frame came once and nothing was refused."""
    return all(run[name] == 0 for name in WRONG)


def count_wrong(runs):
    return {name: sum(run[name] for run in runs) for name in WRONG if name in runs[0]}


def of_floor(bench, **arguments):
    return bench.turn("delivery", data=bench.rig.floor_data, warm_ms=500, **arguments)


def of_ours(bench, **arguments):
    return bench.turn("delivery", warm_ms=500, **arguments)


def compare(bench, floor, ours, rate):
    floors, runs = alternate(bench, floor, ours, bench.wait_pairs)
    reached = middle(runs, "rate")
    return against_waits(floors, runs, fine=all(map(is_whole, runs)) and reached >= 0.98 * rate,
                         extra={**count_wrong(runs), "ack_p50_ms": middle(runs, "ack_p50_ms"),
                                "floor_ack_p50_ms": middle(floors, "ack_p50_ms"), "rate": reached})


def delivery_of(rate):
    def measure(bench):
        bench.rig.start_delivery_floor()
        outcome = compare(bench, lambda: of_floor(bench, rate=rate), lambda: of_ours(bench, rate=rate), rate)
        bench.rig.stop_floor()
        return outcome
    return measure


def delivery_with_kafka(rate):
    """Compares with Tidings without Kafka, with the broker running idle."""
    def run(bench, kafka):
        bench.rig.restart_tidings(kafka=kafka)
        return of_ours(bench, rate=rate)

    def measure(bench):
        bench.rig.start_kafka()
        return compare(bench, lambda: run(bench, False), lambda: run(bench, True), rate)
    return measure


def rate_holds(bench, rate, data):
    try:
        run = bench.load("delivery", rate=rate, warm_ms=500, clients=256, data=data, seconds=2)
    except LoadError:
        return False
    return run["p99_ms"] < MAX_P99_MS and is_whole(run) and run["rate"] >= 0.98 * rate


def highest_rate(bench, start, data):
    """Up or down by a quarter from `start`, then one step between the last two."""
    rate, holds = start, rate_holds(bench, start, data)
    step = 1.25 if holds else 0.8
    for _ in range(8):
        if rate_holds(bench, int(rate * step), data) != holds:
            break
        rate = int(rate * step)
    good, bad = (rate, int(rate * step)) if holds else (int(rate * step), rate)
    between = (good + bad) // 2
    return between if rate_holds(bench, between, data) else good


def measure_highest_rate(bench):
    """Each search starts where the one before it ended."""
    starts = {"floor": START_RATE, "ours": START_RATE}

    def search(side, data):
        starts[side] = highest_rate(bench, starts[side], data)
        return {"rate": starts[side]}

    rig = bench.rig
    rig.start_delivery_floor()
    floors, ours = alternate(bench, lambda: search("floor", rig.floor_data), lambda: search("ours", rig.data), bench.runs)
    rig.stop_floor()
    outcome = against(floors, ours, "rate")
    outcome.extra["frames_per_second"] = outcome.value * 20
    return outcome


def measure_mark_device(bench):
    load = {"rate": MARKED_POSTS, "marks": MARKS}
    bench.rig.start_delivery_floor()
    floors, ours = alternate(bench, lambda: of_floor(bench, **load), lambda: of_ours(bench, **load), bench.wait_pairs)
    bench.rig.stop_floor()
    unseen = sum(run["marks_unseen"] for run in ours)
    wanted = 0.9 * MARKS * bench.turn_s
    fine = all(is_whole(run) and run["mark_count"] >= wanted for run in ours) and unseen == 0
    return against_waits(floors, ours, "mark_", fine=fine,
                         extra={**count_wrong(ours), "marks_sent": middle(ours, "marks_sent"), "marks_unseen": unseen})


def measure_frames(bench):
    rig = bench.rig
    frame_bytes = round(bench.load("frames", seconds=1)["frame_bytes"])
    port = rig.start_floor("sockets", "--frame-bytes", frame_bytes)
    floors, ours = alternate(
        bench, lambda: rig.load("listen", url=f"ws://127.0.0.1:{port}", seconds=bench.turn_s),
        lambda: bench.turn("frames"))
    rig.stop_floor()
    return Outcome(middle(ours, "rate"), [run["rate"] for run in ours], middle(floors, "rate"),
                   [run["rate"] for run in floors],
                   fine=all(run["lost"] == run["doubled"] == run["closed"] == 0 for run in ours),
                   extra={"frame_bytes": frame_bytes, **count_wrong(ours),
                          "frames_per_read": middle(ours, "frames_per_read")})
