# SPDX-License-Identifier: Apache-2.0
"""Clients of event streams and sockets that reconnect elsewhere when theirs ends, during a load."""
import http.client
import itertools
import threading
import time

import websocket

from tests.support.reading import is_event, whole_log
from tests.support.sockets import Socket
from tests.support.streams import Stream
from tests.support.wait import wait_until


LOST = (OSError, http.client.HTTPException, websocket.WebSocketException, AssertionError)


class Follower(threading.Thread):
    """A client that keeps one event stream open, on any instance that accepts it, and all events received."""

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
                self.stream = self._open(self.urls[number % len(self.urls)], last_id)
            except LOST:
                time.sleep(0.02)
                continue
            self.opened += 1
            last_id = self._wait_ended(self.stream) or last_id
            self.earlier += self.stream.frames
            self.stream.close()
            self.stream = None

    def _open(self, url, last_id):
        stream = Stream(url, self.member.token, last_id)
        assert stream.status == 200
        return stream

    def _wait_ended(self, stream):
        """The position from which to continue."""
        stream.wait_ended(300)
        return stream.last_id

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


class SocketFollower(Follower):
    """The same with native sockets."""

    def _open(self, url, last_id):
        args = {"since": last_id} if last_id else {}
        return Socket(self.member.at(url).ok("rtm.connect", native=True, **args)["url"])

    def _wait_ended(self, stream):
        stream.wait_closed(300)
        positions = stream.matching({"type": "position"})
        return positions[-1]["position"] if positions else None


def all_came(load, followers, since, timeout=60):
    """Stops the load and waits until each follower has every event after `since`, in order except for repeats."""
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
    """Each of these events was received once, in order; only the last ones before a break may be repeated after it."""
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
