# SPDX-License-Identifier: Apache-2.0
"""What the long calls of a user in 100,000 channels do to others' calls of the same kind: beside them, their p99 may double at most."""
import http.client
import json
import sys
import threading
import time

from bench.hostile_rows import UNNOTICED_MS
from bench.outcome import Outcome

SECONDS = 6
CALLS = (("channels.markAll", {}), ("rtm.start", {}), ("unread.sync", {}), ("conversations.list", {"types": "im"}))
OTHERS = (("unread.sync", {}), ("channels.setNotifications", {"muted": False}))
UNREAD_SQL = "UPDATE channel_members SET ts = 0, seq = 0, ord = 0, epoch = epoch + 1 WHERE user_id = '{user}'"


class Caller(threading.Thread):
    """One connection of one user, which makes the calls in turn until `end` is set; `took`: ms of each. Replies are not parsed."""

    def __init__(self, port, token, calls, end, pause_s=0.0):
        super().__init__(daemon=True)
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.calls, self.end, self.pause_s = calls, end, pause_s
        self.took, self.refused = [], 0

    def run(self):
        turn = 0
        while not self.end.is_set():
            method, arguments = self.calls[turn % len(self.calls)]
            began = time.monotonic()
            self.link.request("POST", f"/api/{method}", json.dumps(arguments), self.head)
            body = self.link.getresponse().read()
            self.took.append(1000 * (time.monotonic() - began))
            self.refused += not body.startswith(b'{"ok":true')
            turn += 1
            time.sleep(self.pause_s)


def run_others(bench, beside):
    """Two honest users for SECONDS, with or without the long calls: p99 and longest of all their calls, and what was refused."""
    end = threading.Event()
    users, group = bench.data["users"], bench.data["groups"]["small"][0]
    port = bench.rig.tidings.port
    others = [Caller(port, users[place]["token"],
                     [(method, {**arguments, "channel": group["id"]}) for method, arguments in OTHERS], end, pause_s=0.005)
              for place in group["members"][:2]]
    reader = users[bench.data["huge_reader"]]
    if beside:
        bench.rig.postgres.sql(UNREAD_SQL.format(user=reader["id"]))
    long = [Caller(port, reader["token"], CALLS, end)] if beside else []
    for caller in others + long:
        caller.start()
    time.sleep(SECONDS)
    end.set()
    for caller in others + long:
        caller.join()
    took = sorted(ms for caller in others for ms in caller.took)
    return {"p99_ms": took[len(took) * 99 // 100], "max_ms": took[-1], "calls": len(took), "long_calls": [len(caller.took) for caller in long],
            "refused": sum(caller.refused for caller in others + long)}


def measure_long_calls(bench):
    pairs = [(run_others(bench, False), run_others(bench, True)) for _ in range(bench.runs)]
    print(json.dumps({"long_calls": pairs}), file=sys.stderr, flush=True)
    ratios = [1.0 if beside["p99_ms"] <= UNNOTICED_MS else beside["p99_ms"] / max(alone["p99_ms"], 0.001) for alone, beside in pairs]
    ratio = sorted(ratios)[len(ratios) // 2]
    return Outcome(ratio, ratios, fine=not any(run["refused"] for pair in pairs for run in pair), extra={"pairs": pairs})
