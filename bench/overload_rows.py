# SPDX-License-Identifier: Apache-2.0
"""Rows about overload: posts beyond the highest rate, and 10,000 event streams that reconnect."""
import json
import statistics
from itertools import pairwise

from bench.hostile_rows import UNNOTICED_MS, say
from bench.outcome import Outcome, middle

SECONDS = 6
WARM_MS = 2000  # until the queues are as full as they get
SLOW_MAX_MS = 1000
REFUSAL_MAX_MS = 50
RECONNECT_SLOWER_MAX = 3
DEVICES = 10  # event streams of each of 1,000 users


def times_slower(before_ms, during_ms):
    """The ratio; 1 below the noticeable limit."""
    return 1.0 if during_ms <= UNNOTICED_MS else max(1.0, during_ms / max(before_ms, 0.001))


def overload_of(times):
    """Posts due at so many times the rate of 256 clients who wait for their answers, on 10,000 connections, against the middle of
    that rate just before and just after. A post that finds no connection free is left out."""
    def measure(bench):
        rates, ours = [bench.load("posts", clients=256)["rate"]], []
        for _ in range(bench.pairs):
            ours.append(bench.rig.load("overload", rate=round(times * rates[-1]), seconds=SECONDS, warm_ms=WARM_MS))
            rates.append(bench.load("posts", clients=256)["rate"])
        floors = [statistics.mean(pair) for pair in pairwise(rates)]
        extra = {name: middle(ours, name) for name in (
            "p50_ms", "p99_ms", "refused_per_s", "left_out_per_s", "refusal_p99_ms", "slow_p50_ms", "slow_p99_ms", "slow_max_ms")}
        extra |= {name: sum(run[name] for run in ours) for name in ("unanswered", "slow_refused", "slow_unanswered")}
        say(json.dumps({"overload": times, **extra}))
        fine = (extra["slow_p99_ms"] <= SLOW_MAX_MS and extra["refusal_p99_ms"] <= REFUSAL_MAX_MS
                and extra["unanswered"] == extra["slow_unanswered"] == 0)
        return Outcome(middle(ours, "rate"), [run["rate"] for run in ours], statistics.median(floors), floors, fine=fine, extra=extra)
    return measure


def measure_reconnect(bench):
    """From the cut until every stream has every frame of the posts that were due until all were back."""
    bench.rig.restart_tidings()
    runs = [bench.rig.load("reconnect", rate=50, devices=DEVICES, seconds=SECONDS, warm_ms=WARM_MS) for _ in range(bench.runs)]
    slower = [times_slower(run["before_p99_ms"], run["during_p99_ms"]) for run in runs]
    wrong = {name: sum(run[name] for run in runs) for name in ("refused", "unanswered", "dropped_streams", "gaps", "lost")}
    extra = {**wrong, "slower": statistics.median(slower),
             **{name: middle(runs, name) for name in ("back_s", "before_p99_ms", "during_p99_ms", "refused_streams", "twice")}}
    say(json.dumps({"reconnect": extra}))
    return Outcome(middle(runs, "whole_s"), [run["whole_s"] for run in runs],
                   fine=not any(wrong.values()) and extra["slower"] <= RECONNECT_SLOWER_MAX, extra=extra)
