# SPDX-License-Identifier: Apache-2.0
"""An event stream (GET /events) of a user: a thread collects its events, tests wait for those they expect."""

import http.client
import json
import socket
import threading
import time
from urllib.parse import urlsplit

from tests.support.sockets import contains
from tests.support.wait import LIMIT_S


class Stream:
    """An open stream at the instance `url`. Close it, or use it as a context manager.

    `frames` are the events' data; `last_id` is the id to resume with, as EventSource keeps it.
    """

    def __init__(self, url, token=None, last_id=None, ticket=None, headers=None, timeout=LIMIT_S, path="/events"):
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        if last_id:
            sent["Last-Event-ID"] = last_id
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        self._connection.connect()
        self._socket = self._connection.sock
        target = f"{path}?ticket={ticket}" if ticket else path
        self._connection.request("GET", target, headers={**sent, **(headers or {})})
        self.response = self._connection.getresponse()
        self.status = self.response.status
        self.last_id = last_id
        self.events = []  # (type, id, data)
        self.comments = 0
        self._ended = False
        self._changed = threading.Condition()
        self._thread = None
        if self.status == 200:
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()

    @property
    def frames(self):
        with self._changed:
            return [data for _, _, data in self.events]

    def expect(self, match, timeout=LIMIT_S):
        """Waits for a frame that `match`es (a dict it must contain, or a predicate) and returns the first."""
        test = match if callable(match) else lambda frame: contains(frame, match)
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for _, _, frame in self.events:
                    if test(frame):
                        return frame
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise AssertionError(f"no frame {match!r}; ended: {self._ended}; {self.events!r}")
                self._changed.wait(left)

    def matching(self, match):
        test = match if callable(match) else lambda frame: contains(frame, match)
        return [frame for frame in self.frames if test(frame)]

    def wait_ended(self, timeout=LIMIT_S):
        with self._changed:
            self._changed.wait_for(lambda: self._ended, timeout)
            assert self._ended, f"the stream is still open after {timeout} s"

    def close(self):
        """Ends it as a client does that loses its connection, and returns the id to go on with."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server was quicker
        if self._thread:
            self._thread.join(5)
        self.response.close()
        self._connection.close()
        assert all(name == frame["type"] for name, _, frame in self.events), self.events
        return self.last_id

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _read(self):
        fields = {}
        try:
            while line := self.response.readline():
                self._line(line.decode().rstrip("\n"), fields)
        except (OSError, ValueError, http.client.HTTPException):
            pass  # as a client that lost its connection
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _line(self, line, fields):
        if line.startswith(":"):
            with self._changed:
                self.comments += 1
                self._changed.notify_all()
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            self._dispatch(fields)
            fields.clear()

    def _dispatch(self, fields):
        with self._changed:
            if "id" in fields:
                self.last_id = fields["id"]
            if "data" in fields:
                frame = json.loads(fields["data"])
                self.events.append((fields.get("event"), fields.get("id"), frame))
            self._changed.notify_all()
