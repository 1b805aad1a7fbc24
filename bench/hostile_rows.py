# SPDX-License-Identifier: Apache-2.0
"""The effect of large bodies on the honest load: its p99 may at most double."""
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.data import Api
from bench.honest_load import KINDS, run_honest
from bench.outcome import Outcome

HOSTILE = Path(__file__).with_name("hostile.py")
SECONDS = 6  # a connection that is not used for 10 s is closed
UNNOTICED_MS = 20  # a p99 below it is fine, whatever the ratio
WAIT_MAX_MS = 250
GROWTH_MAX_MB = 300
LEFT_MAX_MB = 100
QUIET_S = 60


class Hostile:
    """A concurrent run of hostile.py; `answers` afterwards."""

    def __init__(self, bench, **arguments):
        argv = [sys.executable, str(HOSTILE), "--port", str(bench.rig.tidings.port)]
        for name, value in arguments.items():
            argv += [f"--{name.replace('_', '-')}", str(value)]
        self.argv = argv
        self.process = None
        self.answers = {}

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        out, _ = self.process.communicate(timeout=120)
        self.answers = json.loads(out)["answers"]


def resident_mb(bench, field="VmRSS"):
    with open(f"/proc/{bench.rig.tidings.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def compare(pairs):
    """The ratio for each kind of call, and the worst one: the p99 with the hostile load to that of the previous run without it, as the
    median of all pairs. A p99 below UNNOTICED_MS counts as ratio 1."""
    extra = {"wrong": sum(run["wrong"] for pair in pairs for run in pair),
             "longest_ms": max(beside[kind]["max_ms"] for _, beside in pairs for kind in KINDS),
             "longest_alone_ms": max(alone[kind]["max_ms"] for alone, _ in pairs for kind in KINDS)}
    worst = 1.0
    for kind in KINDS:
        alone, beside = ([run[kind]["p99_ms"] for run in runs] for runs in zip(*pairs))
        ratio = statistics.median(b / max(a, 0.001) for a, b in zip(alone, beside))
        extra[kind] = {"alone_p99_ms": alone, "p99_ms": beside, "ratio": round(ratio, 2)}
        if statistics.median(beside) > UNNOTICED_MS:
            worst = max(worst, ratio)
    return worst, extra


def say(text):
    print(text, file=sys.stderr, flush=True)


def poster_of(bench):
    return bench.data["users"][bench.data["poster"]]["token"], bench.data["groups"]["sync"][0]["id"]


def strangers_of(whose):
    """Bodies of 2 MB, 12 MB/s on 16 connections, with no token, an unknown or a valid one."""
    def measure(bench):
        good, channel = poster_of(bench)
        token = {"none": "", "unknown": "xoxp-nobody", "good": good}[whose]
        bench.rig.restart_tidings()

        def beside():
            with Hostile(bench, token=token, channel=channel, seconds=SECONDS + 3) as hostile:
                time.sleep(1)
                run = run_honest(bench, SECONDS)
            return {**run, "answers": hostile.answers}
        pairs = [(run_honest(bench, SECONDS), beside()) for _ in range(bench.runs)]
        ratio, extra = compare(pairs)
        extra["answers"] = pairs[-1][1]["answers"]
        say(json.dumps({"strangers": whose, **extra}))
        return Outcome(ratio, [ratio], fine=extra["wrong"] == 0 and extra["longest_ms"] <= WAIT_MAX_MS, extra=extra)
    return measure


def measure_bytes(bench):
    """1,000 posts of 1 MB at once by one user."""
    token, channel = poster_of(bench)
    bench.rig.restart_tidings()

    def beside():
        with Hostile(bench, token=token, channel=channel, kind="post", connections=1000, total=1,
                     size=1_000_000, bytes_per_s=0, seconds=SECONDS) as hostile:
            run = run_honest(bench, SECONDS)
        return {**run, "answers": hostile.answers}
    before = bench.rig.resident_mb()
    pairs = [(run_honest(bench, SECONDS), beside()) for _ in range(bench.runs)]
    peak = resident_mb(bench, "VmHWM")
    Api(bench.rig.tidings.port)(token, "auth.test")
    time.sleep(QUIET_S)
    after = resident_mb(bench)
    ratio, extra = compare(pairs)
    extra.update(answers=pairs[-1][1]["answers"], rss_before_mb=round(before), rss_peak_mb=round(peak),
                 rss_after_mb=round(after))
    say(json.dumps({"bytes": extra}))
    fine = extra["wrong"] == 0 and peak - before <= GROWTH_MAX_MB and after - before <= LEFT_MAX_MB
    return Outcome(ratio, [ratio], fine=fine, extra=extra)
