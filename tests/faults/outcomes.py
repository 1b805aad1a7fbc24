# SPDX-License-Identifier: Apache-2.0
"""The outcome of each call of one client, and the time without progress."""
import time
from typing import NamedTuple

import requests

UNAVAILABLE = "service_unavailable"


class Outcome(NamedTuple):
    """`error`: the error of the reply, or the reason why there was no reply; "" on success."""

    method: str
    began: float
    ended: float
    error: str
    replied: bool

    @property
    def is_outage(self):
        return not self.replied or self.error == UNAVAILABLE


class Outcomes:
    """Written by the one thread whose calls these are."""

    def __init__(self):
        self.all = []

    def call(self, member, method, **args):
        """Calls, and returns the reply; None when there was none."""
        began, reply, error = time.monotonic(), None, ""
        try:
            reply = member.call(method, **args)
            error = reply.get("error", "")
        except (requests.RequestException, ValueError) as failure:
            error = repr(failure)
        self.all.append(Outcome(method, began, time.monotonic(), error, reply is not None))
        return reply

    @property
    def last(self):
        return self.all[-1]

    def slowest(self):
        """The longest that an answer took, or its absence, in seconds."""
        return max((outcome.ended - outcome.began for outcome in self.all), default=0.0)

    def outages(self):
        return [outcome for outcome in self.all if outcome.is_outage]

    def longest_outage(self):
        """Seconds from the beginning of a call that failed so, the first of a row, to the next success."""
        longest, began = 0.0, None
        for outcome in self.all:
            if outcome.is_outage:
                began = began or outcome.began
                longest = max(longest, outcome.ended - began)
            elif began:
                longest = max(longest, outcome.ended - began)
                began = None
        return longest
