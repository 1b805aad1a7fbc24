# SPDX-License-Identifier: Apache-2.0
"""Rows about catching up by events.sync: after days in 1,000 channels, after seconds in 100."""
import statistics
import time

from bench.data import Api, SYNC_FEW
from bench.outcome import Outcome

EVENTS = 50_000
CALLS_MAX = 60
LIMIT = 1000
FEW_CHANNELS, FEW_POSTS = 100, 10
MEMBER_SQL = """INSERT INTO channel_members (channel_id, user_id, member_seq)
SELECT 'CSYNC' || lpad(n::text, 6, '0'), '{user}', 0 FROM generate_series(1, {channels}) n ON CONFLICT DO NOTHING"""


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


def measure_seconds(bench):
    """Some posts since, in channels that are others each time."""
    users, api = bench.data["users"], Api(bench.rig.tidings.port)
    reader, poster = users[0], users[bench.data["poster"]]["token"]
    bench.rig.postgres.sql(MEMBER_SQL.format(user=reader["id"], channels=FEW_CHANNELS))
    position = api(reader["token"], "unread.sync", limit=1)["position"]
    took, fine = [], True
    for turn in range(100 * bench.runs):
        for place in range(FEW_POSTS):
            api(poster, "chat.postMessage", channel=f"CSYNC{1 + (turn * 37 + place * 11) % FEW_CHANNELS:06}", text="x" * 100)
        began = time.monotonic()
        reply = api(reader["token"], "events.sync", since=position)
        took.append(1000 * (time.monotonic() - began))
        fine = fine and not reply["has_more"] and len(reply["events"]) >= FEW_POSTS
        position = reply["position"]
    took.sort()
    return Outcome(statistics.median(took), took[::len(took) // 10], fine=fine,
                   extra={"p50_ms": statistics.median(took), "p99_ms": took[len(took) * 99 // 100], "max_ms": took[-1]})
