# SPDX-License-Identifier: Apache-2.0
"""The effect on the honest load in other channels of a channel's row that stays locked, and of 50 posts that wait for it."""
import json
import subprocess
import threading
import time

from bench.hostile_rows import WAIT_MAX_MS, compare, poster_of, say
from bench.honest_load import run_honest
from bench.long_rows import post
from bench.outcome import Outcome
from tools.services import POSTGRES_BIN

WAITING = 50
HELD_S = 20
# The honest load has connections that it does not need for longer than a head may take by default.
SETTINGS = {"TIDINGS_HEADER_TIMEOUT_MS": "60000"}
LOCK = "BEGIN; SELECT id FROM channels WHERE id = '{channel}' FOR UPDATE;\n"


class LockedRow:
    """The row of a channel, locked by a session of psql for HELD_S at least; `posts` wait for it."""

    def __init__(self, bench, token, channel):
        self.posts = [threading.Thread(target=self.post_until_taken, args=(bench.rig.tidings.port, token, channel), daemon=True)
                      for _ in range(WAITING)]
        self.channel, self.taken, self.since = channel, [], 0
        self.psql = subprocess.Popen([POSTGRES_BIN / "psql", "-XqAt", bench.rig.postgres.url], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def post_until_taken(self, port, token, channel):
        """A post that has waited for its whole time is refused, and retried."""
        while not post(port, token, "chat.postMessage", channel=channel, text="waits").startswith(b'{"ok":true'):
            time.sleep(1)
        self.taken.append(channel)

    def __enter__(self):
        self.psql.stdin.write(LOCK.format(channel=self.channel))
        self.psql.stdin.flush()
        if self.psql.stdout.readline().strip() != self.channel:
            raise RuntimeError(f"{self.channel} could not be locked")
        self.since = time.monotonic()
        for one in self.posts:
            one.start()
        time.sleep(1)
        return self

    def __exit__(self, *_):
        time.sleep(max(0, self.since + HELD_S - time.monotonic()))
        self.psql.communicate("ROLLBACK;\n")
        for one in self.posts:
            one.join()


def measure_locked_row(bench):
    seconds = HELD_S - 2
    bench.rig.restart_tidings(settings=SETTINGS)

    def beside():
        with LockedRow(bench, *poster_of(bench)) as locked:
            run = run_honest(bench, seconds)
            early = len(locked.taken)
        return {**run, "early": early, "taken": len(locked.taken)}
    pairs = [(run_honest(bench, seconds), beside()) for _ in range(bench.runs)]
    bench.rig.restart_tidings()
    ratio, extra = compare(pairs)
    extra["early"] = sum(run["early"] for _, run in pairs)
    say(json.dumps({"locked_row": extra}))
    fine = (extra["wrong"] == extra["early"] == 0 and all(run["taken"] == WAITING for _, run in pairs)
            and extra["longest_ms"] <= max(WAIT_MAX_MS, extra["longest_alone_ms"]))
    return Outcome(ratio, [ratio], fine=fine, extra=extra)
