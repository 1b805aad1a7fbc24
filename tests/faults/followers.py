# SPDX-License-Identifier: Apache-2.0
"""Clients of event streams that go on elsewhere when theirs ends, beside a load."""
import http.client
import itertools
import threading
import time

from tests.support.reading import is_event, whole_log
from tests.support.streams import Stream
from tests.support.wait import wait_until


class Follower(threading.Thread):
    """A client that keeps one event stream, on whichever instance takes it, and all that came."""

    def __init__(self, member, urls):
        super().__init__(daemon=True)
        self.member = member
        self.urls = urls
        self.stream = None
        self.stopping = threading.Event()
        self.opened = 0
        self.earlier = []
        self.start()

    def run(self):
        last_id = None
        for number in itertools.count():
            if self.stopping.is_set():
                return
            try:
                self.stream = Stream(self.urls[number % len(self.urls)], self.member.token, last_id)
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
                continue
            self.opened += self.stream.status == 200
            if self.stream.status == 200:
                self.stream.wait_ended(300)
                last_id = self.stream.last_id
            self.earlier += self.stream.frames
            self.stream.close()
            self.stream = None

    @property
    def frames(self):
        stream = self.stream
        return self.earlier + (stream.frames if stream else [])

    def cut(self):
        """Loses its connection."""
        stream = self.stream
        if stream:
            stream.close()

    def seqs(self, channel):
        return [f["seq"] for f in self.frames if is_event(f) and f["channel"] == channel]

    def stop(self):
        self.stopping.set()
        while self.is_alive():
            self.cut()
            self.join(0.1)


def all_came(load, followers, since, timeout=60):
    """Stops the load and waits until each follower has every event after `since`; in order but for repeats."""
    load.stop()
    for channel in load.channels:
        head = max(event["seq"] for event in whole_log(load.people[0][0], channel))
        for follower in followers:
            wanted = set(range(since[channel] + 1, head + 1))
            wait_until(lambda f=follower, c=channel, w=wanted: w <= set(f.seqs(c)), timeout,
                       what=f"events {since[channel] + 1} to {head} of {channel}")
    for follower in followers:
        assert not [frame for frame in follower.frames if frame["type"] == "gap"]


def each_once(follower, channels):
    """Each event of these came once, in order; but the last ones before a connection broke may have come again after it."""
    streams = []
    for frame in follower.frames:
        if frame["type"] == "hello":
            streams.append([])
        elif is_event(frame) and frame["channel"] in channels:
            streams[-1].append((frame["channel"], frame["seq"]))
    for stream in streams:
        for channel in channels:
            seqs = [seq for c, seq in stream if c == channel]
            assert seqs == sorted(set(seqs)), f"{channel}, within one stream: {seqs}"


def heads(load):
    return {channel: max(event["seq"] for event in whole_log(load.people[0][0], channel))
            for channel in load.channels}
