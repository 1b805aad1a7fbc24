# SPDX-License-Identifier: Apache-2.0
"""The events that a user missed, by events.sync."""


class CatchUp:
    """Goes on from a position, page by page, on one client after the other."""

    def __init__(self, *clients, since=None):
        self.clients = clients
        self.position = since or clients[0].ok("unread.sync")["position"]
        self.frames = []
        self.gaps = []
        self.calls = 0

    def step(self, **args):
        """One call; its reply."""
        reply = self.clients[self.calls % len(self.clients)].ok("events.sync", since=self.position, **args)
        self.calls += 1
        assert reply["events"] or reply["gaps"] or not reply["has_more"], "each call gets further"
        self.position = reply["position"]
        self.frames += reply["events"]
        self.gaps += reply["gaps"]
        return reply

    def all(self, calls_max=1000, **args):
        """Reads all pages; returns the frames."""
        first = len(self.frames)
        for _ in range(calls_max):
            if not self.step(**args)["has_more"]:
                return self.frames[first:]
        raise AssertionError(f"more after {calls_max} calls")

    def seqs(self, channel):
        return [frame["seq"] for frame in self.frames if channel_of(frame) == channel and "seq" in frame]


def channel_of(frame):
    channel = frame.get("channel")
    return channel["id"] if isinstance(channel, dict) else channel
