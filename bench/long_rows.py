# SPDX-License-Identifier: Apache-2.0
"""The effect of the long calls of a user in 100,000 channels, among 500,000 others, on others' calls of the same kind: their p99 may at
most double. Also the duration of each call alone, and the longest turn of the loop meanwhile."""
import http.client
import json
import re
import statistics
import sys
import threading
import time

from bench import strategy_rows
from bench.data import metrics
from bench.hostile_rows import UNNOTICED_MS
from bench.outcome import Outcome

SECONDS = 6
REPEATS = 5
PAGES = 5  # of a list, each time
LONG = (("channels.markAll", {}), ("rtm.start", {}), ("unread.sync", {}), ("conversations.list", {"types": "im"}))
LISTS = (("users.list", {"limit": 0}), ("channels.members", {"channel": strategy_rows.HUGE_ID, "limit": 1000}))
OTHERS = (("unread.sync", {}), ("channels.setNotifications", {"muted": False}))
MS_MAX = {"channels.markAll": 1500, "channels.members": 5}
STRETCH_MAX_MS = 5
UNREAD_SQL = "UPDATE channel_members SET ts = 0, seq = 0, ord = 0, epoch = epoch + 1 WHERE user_id = '{user}'"
USERS_SQL = """
INSERT INTO users (id, workspace_id, name, real_name)
SELECT m.user_id, u.workspace_id, lower(m.user_id), '' FROM channel_members m, users u
WHERE m.channel_id = '{channel}' AND u.id = '{user}' ON CONFLICT DO NOTHING;
ANALYZE users, channel_members;
"""
CURSOR = re.compile(rb'"next_cursor":"([^"]*)"')
BUCKET = re.compile(r'^tidings_loop_stall_seconds_bucket{le="([^"]+)"} (\d+)$', re.M)


class Link:
    """One connection of one user. Replies are not parsed."""

    def __init__(self, port, token):
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method, arguments):
        self.link.request("POST", f"/api/{method}", json.dumps(arguments), self.head)
        return self.link.getresponse().read()

    def pages(self, method, arguments, is_enough):
        """The pages of a list, from its beginning to its end."""
        cursor = ""
        while not is_enough():
            body = self(method, {**arguments, "cursor": cursor})
            yield body
            found = CURSOR.search(body[-200:])
            cursor = found[1].decode() if found else ""
            if not cursor:
                return


def post(port, token, method, **arguments):
    """The reply to one call on a connection of its own."""
    return Link(port, token)(method, arguments)


class Caller(threading.Thread):
    """One connection of one user, which makes the calls in turn, and goes through all pages of the lists, until `end` is set; `took`: ms
    of each."""

    def __init__(self, port, token, calls, end, lists=(), pause_s=0.0):
        super().__init__(daemon=True)
        self.ask = Link(port, token)
        self.calls, self.lists, self.end, self.pause_s = calls, lists, end, pause_s
        self.took, self.refused = [], 0

    def note(self, began, body):
        self.took.append(1000 * (time.monotonic() - began))
        self.refused += not body.startswith(b'{"ok":true')
        time.sleep(self.pause_s)

    def run(self):
        while not self.end.is_set():
            for method, arguments in self.calls:
                began = time.monotonic()
                self.note(began, self.ask(method, arguments))
            for method, arguments in self.lists:
                began = time.monotonic()
                for body in self.ask.pages(method, arguments, self.end.is_set):
                    self.note(began, body)
                    began = time.monotonic()


def run_others(bench, beside):
    """Two honest users for SECONDS, with or without the long calls: p99 and maximum of all their calls, and the refusals."""
    end = threading.Event()
    users, group = bench.data["users"], bench.data["groups"]["small"][0]
    port = bench.rig.tidings.port
    others = [Caller(port, users[place]["token"],
                     [(method, {**arguments, "channel": group["id"]}) for method, arguments in OTHERS], end, pause_s=0.005)
              for place in group["members"][:2]]
    token = make_unread(bench) if beside else ""
    long = [Caller(port, token, LONG, end), Caller(port, token, (), end, LISTS)] if beside else []
    for caller in others + long:
        caller.start()
    time.sleep(SECONDS)
    end.set()
    for caller in others + long:
        caller.join()
    took = sorted(ms for caller in others for ms in caller.took)
    return {"p99_ms": took[len(took) * 99 // 100], "max_ms": took[-1], "calls": len(took), "long_calls": [len(caller.took) for caller in long],
            "refused": sum(caller.refused for caller in others + long)}


def make_unread(bench):
    """All of the channels of the user in 100,000; their token."""
    reader = bench.data["users"][bench.data["huge_reader"]]
    bench.rig.postgres.sql(UNREAD_SQL.format(user=reader["id"]))
    return reader["token"]


def stalls(port):
    """The turns of loops so far that took at most so many ms."""
    return {float(bound) * 1000: int(count) for bound, count in BUCKET.findall(metrics(port))}


def longest_between(before, after):
    """The least bound beneath which all turns in between were."""
    total = after[float("inf")] - before[float("inf")]
    return min(bound for bound in after if after[bound] - before[bound] == total)


def measure_alone(bench, method, arguments, is_list):
    """Times of the call, or of a page of it, and the longest turn of the loop meanwhile: the middle one of REPEATS, since the machine does other
    things, too."""
    port, took, longest = bench.rig.tidings.port, [], []
    for _ in range(REPEATS):
        ask = Link(port, make_unread(bench))
        ask("auth.test", {})
        before, times = stalls(port), []
        began = time.monotonic()
        for _ in ask.pages(method, arguments, lambda made=times: len(made) == (PAGES if is_list else 1)):
            times.append(1000 * (time.monotonic() - began))
            began = time.monotonic()
        took += times
        longest.append(longest_between(before, stalls(port)))
    return {"p50_ms": round(statistics.median(took), 2), "stretch_ms": statistics.median(longest), "stretches_ms": longest}


def measure_long_calls(bench):
    strategy_rows.make_most(bench)
    bench.rig.postgres.sql(USERS_SQL.format(channel=strategy_rows.HUGE_ID, user=bench.data["users"][0]["id"]))
    alone = {method: measure_alone(bench, method, arguments, (method, arguments) in LISTS) for method, arguments in LONG + LISTS}
    pairs = [(run_others(bench, False), run_others(bench, True)) for _ in range(bench.runs)]
    print(json.dumps({"long_calls": pairs, "alone": alone}), file=sys.stderr, flush=True)
    ratios = [1.0 if beside["p99_ms"] <= UNNOTICED_MS else beside["p99_ms"] / max(quiet["p99_ms"], 0.001) for quiet, beside in pairs]
    ratio = sorted(ratios)[len(ratios) // 2]
    fine = (not any(run["refused"] for pair in pairs for run in pair) and all(alone[method]["p50_ms"] <= most for method, most in MS_MAX.items())
            and all(one["stretch_ms"] <= STRETCH_MAX_MS for one in alone.values()))
    return Outcome(ratio, ratios, fine=fine, extra={"pairs": pairs, "alone": alone})
