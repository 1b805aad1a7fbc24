# SPDX-License-Identifier: Apache-2.0
"""A client that is cut repeatedly, and continues in another way, on another instance, from the last position it received."""
import json
import time

import websocket

from tests.support.catch_up import channel_of
from tests.support.raw import RawConnection, request
from tests.support.wait import LIMIT_S

CALLS, STREAM, NATIVE, PLAIN = "calls", "stream", "native", "plain"
WAYS = (CALLS, STREAM, NATIVE, PLAIN)
CONNECTIONS_MAX = 300
EVENTS_MAX = 10_000


class Reader:
    """The frames that one member has received, and the position to continue from."""

    def __init__(self, urls, member):
        self.urls = urls
        self.member = member
        self.seen = {}  # channel → seqs
        self.connections = 0
        self.position = member.ok("unread.sync")["position"]

    def missing(self, wanted):
        """The required events that were not received."""
        return {(channel, seq) for channel, seqs in wanted.items() for seq in seqs} - {
            (channel, seq) for channel, seqs in self.seen.items() for seq in seqs}

    def connect(self, way, count, wanted):
        """Takes at most `count` events, and no more than the expected ones. Then the connection is cut."""
        before = self.position
        url = self.urls[self.connections % len(self.urls)]
        self.connections += 1
        frames = list(getattr(self, f"_by_{way}")(url, count, wanted))
        assert not frames or way == PLAIN or self.position != before, f"{way}: events came, and the position stayed {before}"
        last = {}
        for frame in frames:
            channel, seq = channel_of(frame), frame.get("seq")
            assert frame["type"] != "gap" and (seq is None or seq > last.get(channel, 0)), f"{way}: {frame} behind {last}"
            if seq is not None:
                last[channel] = seq

    def finish(self, way, count, wanted):
        """Continues until all expected events were received. No position is passed twice. (A plain socket has no positions: its connection
        has to last.)"""
        places = set()
        count = EVENTS_MAX if way == PLAIN else count
        while self.missing(wanted):
            assert self.position not in places and len(places) < CONNECTIONS_MAX, f"{way}: {self.missing(wanted)} never come"
            places.add(self.position)
            self.connect(way, count, wanted)

    def _take(self, frame):
        if "seq" in frame:
            self.seen.setdefault(channel_of(frame), set()).add(frame["seq"])
        return frame

    def _by_calls(self, url, count, wanted):
        reply = self.member.at(url).ok("events.sync", since=self.position, limit=count)
        assert not reply["gaps"]
        self.position = reply["position"]
        return [self._take(frame) for frame in reply["events"]]

    def _by_stream(self, url, count, wanted):
        with RawConnection(url) as raw:
            raw.send(request("GET", "/events", self.member.token, headers=[f"Last-Event-ID: {self.position}"]))
            assert raw.reply(head_only=True).status == 200
            deadline = time.monotonic() + LIMIT_S
            while count > 0 and self.missing(wanted):
                assert time.monotonic() < deadline, f"{self.missing(wanted)} do not come"
                lines = raw.read_through(b"\n\n").decode().splitlines()
                fields = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(":"))
                frame = json.loads(fields.get("data", '{"type": "hello"}'))
                if frame["type"] != "hello":
                    self.position = fields["id"]
                    count -= 1
                    yield self._take(frame)

    def _frames(self, url, **args):
        """The frames sent to a socket after its hello."""
        socket = websocket.create_connection(self.member.at(url).ok("rtm.connect", since=self.position, **args)["url"], timeout=LIMIT_S)
        try:
            assert json.loads(socket.recv()) == {"type": "hello"}
            while True:
                yield json.loads(socket.recv())
        finally:
            socket.shutdown()

    def _by_native(self, url, count, wanted):
        """The position after the first event is always read: without it, the client makes no progress."""
        frames, before, told = self._frames(url, native=True), None, 0
        while before is None or (count > told and self.missing(wanted)) or (told > 0 and self.position == before):
            frame = next(frames)
            if frame["type"] == "position":
                self.position = frame["position"]
                before = before or self.position
            else:
                told += 1
                yield self._take(frame)
        frames.close()

    def _by_plain(self, url, count, wanted):
        """It receives no positions: when it has everything, unread.sync returns the position."""
        frames = self._frames(url)
        while count > 0 and self.missing(wanted):
            count -= 1
            yield self._take(next(frames))
        frames.close()
        if not self.missing(wanted):
            self.position = self.member.ok("unread.sync")["position"]
