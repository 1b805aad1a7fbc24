# SPDX-License-Identifier: Apache-2.0
"""The row about catching up by events.sync after days in 1,000 channels."""
import statistics
import time

from bench.data import Api, SYNC_FEW
from bench.outcome import Outcome

EVENTS = 50_000
CALLS_MAX = 60
LIMIT = 1000


def catch_up(api, token, position):
    """All that was missed: seconds, calls, events."""
    calls, events, more, began = 0, 0, True, time.monotonic()
    while more:
        reply = api(token, "events.sync", since=position, limit=LIMIT)
        position, more = reply["position"], reply["has_more"]
        calls, events = calls + 1, events + len(reply["events"])
    return time.monotonic() - began, calls, events


def measure_days(bench):
    users, reader = bench.data["users"], bench.data["few_reader"]
    bench.add_group("few", [{"id": f"CSYNC{n:06}", "members": [bench.data["poster"]]} for n in range(1, SYNC_FEW + 1)])
    api, token = Api(bench.rig.tidings.port), users[reader]["token"]
    position = api(token, "unread.sync", limit=1)["position"]
    bench.load("posts", group="few", total=EVENTS, seconds=300, clients=64)
    runs = [catch_up(api, token, position) for _ in range(bench.runs)]
    took, calls, events = zip(*runs)
    return Outcome(statistics.median(took), list(took), fine=max(calls) <= CALLS_MAX and min(events) >= EVENTS,
                   extra={"calls": max(calls), "events": min(events)})
