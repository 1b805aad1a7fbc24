# SPDX-License-Identifier: Apache-2.0
"""Waiting on a condition, in place of sleeping. Limits are for slow machines: when all is well they cost nothing."""

import time
from contextlib import suppress

LIMIT_S = 60.0  # each step may take ten times as long as on an idle machine
SOON_S = 8.0  # what is promised within 5 s


def wait_until(predicate, timeout=LIMIT_S, interval=0.01, what="the condition"):
    """Calls `predicate` until its answer is true, and returns that answer. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout} s (last answer: {answer!r})")
        time.sleep(interval)


def act_until(action, predicate, again_s, what="the condition"):
    """Acts, again every `again_s` seconds, until the answer of `predicate` is true, and returns that answer. Fails after LIMIT_S seconds."""
    def act_and_wait():
        action()
        with suppress(AssertionError):
            return wait_until(predicate, again_s)
    return wait_until(act_and_wait, what=what)
