#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench: measures Tidings on this machine, against the floor, and says what holds."""
import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import data as bench_data, plots  # noqa: E402
from bench.rig import LoadError, Rig, ServiceError, SetUpError  # noqa: E402
from bench.rows import ROWS, Bench  # noqa: E402
from tools.project import BUILD, RUN, catch_signals  # noqa: E402


def parse(argv):
    rows = "\n".join(f"  {row.name:<20}{row.what}{describe_target(row)}" for row in ROWS)
    parser = argparse.ArgumentParser(
        prog="./dev bench", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__, epilog=f"rows:\n{rows}\n\nHow each is measured: bench/README.md")
    parser.add_argument("--json", metavar="FILE", help="also write the results there")
    parser.add_argument("--rows", metavar="A,B", help="only these rows")
    parser.add_argument("--quick", action="store_true",
                        help="one or two short runs of each: about 10 minutes, for a rough picture")
    parser.add_argument("--hold", action="store_true",
                        help="set up, print the addresses, and wait, so that you can inspect the server under load")
    parser.add_argument("--strategies", action="store_true",
                        help="only the cost of unread strategies in Redis: prints the table of"
                             " docs/unread.md and redraws its plots, in 10 seconds")
    parser.add_argument("--programs", metavar="DIR", type=Path, default=BUILD / "release",
                        help="directory of the built programs (%(default)s)")
    parser.add_argument("--home", metavar="DIR", type=Path, default=RUN / "bench",
                        help="directory for the servers of the run; one run at a time (%(default)s)")
    options = parser.parse_args(argv)
    options.rows = choose(parser, options.rows)
    return options


def choose(parser, names):
    if names is None:
        return ROWS
    known = {row.name: row for row in ROWS}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}")
    return [row for row in ROWS if row.name in names.split(",")]


def describe_target(row):
    sign = "≥" if row.more_is_better else "≤"
    bound = f"{row.target:g} of the floor" if row.of == "ratio" else f"{row.target:g} {row.unit}"
    return f" ({sign} {bound})"


def run_row(row, bench):
    """The row of the JSON: figures, and whether the target holds."""
    outcome = row.measure(bench)
    judged = outcome.ratio if row.of == "ratio" else outcome.value
    reached = judged >= row.target if row.more_is_better else judged <= row.target
    return {"name": row.name, "what": row.what, "unit": row.unit, "value": outcome.value,
            "floor": outcome.floor, "ratio": outcome.ratio, "target": row.target, "target_of": row.of,
            "holds": bool(reached and outcome.fine), "runs": outcome.runs,
            "floor_runs": outcome.floor_runs, **outcome.extra}


def failed_row(row, error):
    return {"name": row.name, "what": row.what, "unit": row.unit, "value": None, "floor": None,
            "ratio": None, "target": row.target, "target_of": row.of, "holds": False, "runs": [],
            "error": str(error)}


def number(value, digits=4):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits - 1}g}" if abs(value) >= 1 else f"{value:.3f}"


HEAD = ("row", "what", "value", "unit", "floor", "ratio", "target", "holds", "p50 ms", "p99 ms")


def cells(result, row):
    return (result["name"], result["what"], number(result["value"]), result["unit"],
            number(result["floor"]), number(result["ratio"]),
            describe_target(row).strip(" ()"), "yes" if result["holds"] else "NO",
            number(result.get("p50_ms")), number(result.get("p99_ms")))


def print_table(results):
    known = {row.name: row for row in ROWS}
    lines = [HEAD] + [cells(result, known[result["name"]]) for result in results]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    for result in results:
        wrong = {name: result[name] for name in ("lost", "doubled", "closed", "refused",
                                                 "marks_unseen") if result.get(name)}
        if wrong or "error" in result:
            print(f"{result['name']}: {result.get('error') or wrong}")


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return {"cores": os.cpu_count(), "cpu": models[0] if models else platform.processor()}


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, check=False,
                          capture_output=True, text=True)
    return done.stdout.strip()


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def warn_when_busy():
    load = os.getloadavg()[0]
    if load > 0.7:
        say(f"the machine is busy (load {load:.1f}): do not trust the figures, least of all the rates")


def look_at_machine(rig, looks):
    """Adds the current stalls of the machine's cores and its disk's sync times, measured without any load of ours."""
    pauses, disk = rig.load("pauses"), rig.load("disk", file=rig.home / "disk")
    say(f"pauses of this machine in {pauses['seconds']} s on {pauses['cores']} cores: {pauses['over_1_ms']} of more than 1 ms, "
        f"{pauses['over_3_ms']} of more than 3 ms, the longest {pauses['longest_ms']} ms, {pauses['lost_percent']} % of the time")
    say(f"its disk syncs a page, 100 times a second, in {disk['p50_ms']} ms (p50), {disk['p99_ms']} ms (p99), {disk['max_ms']} ms at most")
    looks.append({"pauses": pauses, "disk": disk})


def hold(rig):
    print(f"data {rig.data}\ntidings {rig.tidings.url} pid {rig.tidings.pid}\n"
          f"postgres {rig.postgres.url}\nredis {rig.redis.url}\nCtrl-C stops it.", flush=True)
    signal.pause()


def run_rows(options, bench):
    results = []
    for row in sorted(options.rows, key=lambda row: row.kafka):  # a broker beside would disturb
        try:
            bench.rig.settle()
            result = run_row(row, bench)
        except (LoadError, ServiceError) as error:
            result = failed_row(row, error)
            bench.rig.stop_floor()
            bench.rig.restart_tidings()
        say(f"{row.name}: {number(result['value'])} {row.unit}, ratio {number(result['ratio'])}, "
            f"{'holds' if result['holds'] else 'DOES NOT HOLD'} {result.get('error', '')}")
        results.append(result)
    return results


def measure(options, looks):
    rig = Rig(options.programs, options.home.resolve())
    try:
        warn_when_busy()
        say("setting up")
        rig.start()
        data = bench_data.make(rig)
        if options.hold:
            hold(rig)
        rig.settle()
        look_at_machine(rig, looks)
        results = run_rows(options, Bench(rig, data, options.quick))
        look_at_machine(rig, looks)
        return results
    finally:
        rig.stop()


def main(argv):
    options = parse(argv)
    if options.strategies:
        plots.run(ROOT / "docs")
        return 0
    catch_signals(signal.default_int_handler, (signal.SIGTERM, signal.SIGHUP))
    looks = []
    try:
        results = measure(options, looks)
    except KeyboardInterrupt:
        return 130
    except (LoadError, ServiceError, SetUpError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print_table(results)
    if options.json:
        document = {"machine": {**machine(), "looks": looks}, "commit": commit(), "quick": options.quick,
                    "rows": results}
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result["holds"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
