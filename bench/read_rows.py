# SPDX-License-Identifier: Apache-2.0
"""Rows about answers that are read, against a floor of one prepared select each; and about marks, against bare updates."""
import statistics
import time

from bench.data import Api, HUGE_CHANNELS
from bench.outcome import Outcome, against, against_waits, alternate, middle

INFO_RATE = 5000
CHANGED = 10  # channels that are posted to before each unread.sync of a delta


def compare_info(bench):
    rig = bench.rig
    rig.start_reads_floor()
    floors, ours = alternate(bench, lambda: bench.turn("info", rate=INFO_RATE, warm_ms=500, data=rig.floor_data),
                             lambda: bench.turn("info", rate=INFO_RATE, warm_ms=500), bench.wait_pairs)
    rig.stop_floor()
    rate = middle(ours, "rate")
    return against_waits(floors, ours, fine=rate >= 0.98 * INFO_RATE,
                         extra={"rate": rate, "floor_rate": middle(floors, "rate")})


def sync_once(bench, user, **arguments):
    return bench.turn("sync", user=user, **arguments)


def compare_sync(bench, user, ours, **floor_arguments):
    rig = bench.rig
    rig.start_reads_floor()
    floors, runs = alternate(bench, lambda: sync_once(bench, user, data=rig.floor_data, **floor_arguments), ours,
                             bench.wait_pairs)
    rig.stop_floor()
    outcome = against(floors, runs, "p50_ms")
    outcome.extra.update(reply_bytes=runs[0]["reply_bytes"], floor_reply_bytes=floors[0]["reply_bytes"],
                         p99_ratio=statistics.median(run["p99_ms"] / floor["p99_ms"] for floor, run in zip(floors, runs)))
    return outcome


def sync_of(reader):
    def measure(bench):
        user = bench.data[reader]
        return compare_sync(bench, user, lambda: sync_once(bench, user))
    return measure


def measure_sync_anew(bench):
    """The first answer of an instance that keeps nothing of the user."""
    user = bench.data["huge_reader"]

    def once():
        bench.rig.restart_tidings()
        return sync_once(bench, user, total=1, warm_ms=0)
    return compare_sync(bench, user, once, total=1, warm_ms=0)


def changed_channels(turn):
    return [f"CHUGE{1 + (turn * 7919 + place * 9973) % HUGE_CHANNELS:06}" for place in range(CHANGED)]


def took_ms(call):
    began = time.monotonic()
    reply = call()
    return 1000 * (time.monotonic() - began), reply


def measure_sync_delta(bench):
    """The floor gets the list of channels to read; Tidings gets the token of the previous call."""
    rig, users = bench.rig, bench.data["users"]
    floor, ours = Api(rig.start_reads_floor()), Api(rig.tidings.port)
    reader, poster = (users[bench.data[name]]["token"] for name in ("huge_reader", "poster"))
    token = ours(reader, "unread.sync", limit=1)["sync_token"]

    def once(turn):
        nonlocal token
        channels = changed_channels(turn)
        for channel in channels:
            ours(poster, "chat.postMessage", channel=channel, text="x" * 100)
        floor_ms, rows = took_ms(lambda: floor(reader, "unread.sync", some="{" + ",".join(channels) + "}"))
        ours_ms, delta = took_ms(lambda: ours(reader, "unread.sync", since=token))
        token = delta["sync_token"]
        return floor_ms, ours_ms, len(rows["rows"]) == len(delta["channels"]) == CHANGED

    runs = [once(turn) for turn in range(20 * bench.runs)]
    rig.stop_floor()
    floors, times, fine = zip(*runs)
    return Outcome(statistics.median(times), list(times), statistics.median(floors), list(floors), fine=all(fine),
                   extra={"p99_ms": sorted(times)[-1]})


def measure_marks(bench):
    """Closed loop: a mark that finds no message left to move to would fail, so there are more than either side can reach."""
    rig = bench.rig
    depth = 60 * bench.turn_s
    rig.start_delivery_floor()
    floors, ours = alternate(bench, lambda: bench.turn("marks", depth=depth, data=rig.floor_data),
                             lambda: bench.turn("marks", depth=depth), bench.wait_pairs)
    rig.stop_floor()
    return against(floors, ours, "rate")
