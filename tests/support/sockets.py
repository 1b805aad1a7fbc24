# SPDX-License-Identifier: Apache-2.0
"""A WebSocket of a user: a thread collects its frames, tests wait for those they expect."""

import json
import struct
import threading
import time

import websocket

from tests.support.wait import LIMIT_S


class Socket:
    """An open connection at an `rtm.connect` url. Close it, or use it as a context manager."""

    def __init__(self, url, timeout=LIMIT_S):
        self._ws = websocket.create_connection(url, timeout=timeout, enable_multithread=True)
        self._ws.settimeout(None)
        self._frames = []
        self._pings = []
        self._closed = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def frames(self):
        """All frames so far, in the order received."""
        with self._changed:
            return list(self._frames)

    @property
    def pings(self):
        """The payloads of the server's PINGs so far."""
        with self._changed:
            return list(self._pings)

    def expect(self, match, timeout=LIMIT_S):
        """Waits for a frame that `match`es (a dict it must contain, or a predicate) and returns the first."""
        test = match if callable(match) else lambda frame: contains(frame, match)
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for frame in self._frames[seen:]:
                    if test(frame):
                        return frame
                seen = len(self._frames)
                left = deadline - time.monotonic()
                if self._closed or left <= 0:
                    state = f"closed {self._closed}" if self._closed else f"open after {timeout} s"
                    raise AssertionError(f"no frame {match!r}; socket {state}; frames: {self._frames!r}")
                self._changed.wait(left)

    def matching(self, match):
        """All frames so far that contain `match` (a dict), or for which it is true."""
        test = match if callable(match) else lambda frame: contains(frame, match)
        return [frame for frame in self.frames if test(frame)]

    def send(self, frame):
        """Sends `frame` (a dict) as one text frame."""
        self._ws.send(json.dumps(frame))

    def send_at_once(self, *frames):
        """Sends several in one write, so that the server has them in one turn."""
        texts = [json.dumps(frame) for frame in frames]
        self._ws.sock.sendall(b"".join(websocket.ABNF.create_frame(text, websocket.ABNF.OPCODE_TEXT).format() for text in texts))

    def request(self, frame, timeout=LIMIT_S):
        """Sends `frame`, which has an `id`, and returns the frame that replies to it."""
        self.send(frame)
        return self.expect({"reply_to": frame["id"]}, timeout)

    def wait_closed(self, timeout=LIMIT_S):
        """Waits until the server closes the connection; returns (code, reason), (1006, "") without a close frame."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed, timeout)
            assert self._closed, f"the socket is still open after {timeout} s"
            return self._closed

    @property
    def is_open(self):
        with self._changed:
            return self._closed is None

    def close(self):
        if self.is_open:
            try:
                self._ws.send_close()
            except (OSError, websocket.WebSocketException):
                pass  # the server was quicker
        self._thread.join(2)
        self._ws.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _read(self):
        while True:
            try:
                opcode, data = self._ws.recv_data(control_frame=True)
            except (OSError, websocket.WebSocketException):
                opcode, data = websocket.ABNF.OPCODE_CLOSE, b""
            with self._changed:
                self._take(opcode, data)
                self._changed.notify_all()
                if self._closed:
                    return

    def _take(self, opcode, data):
        if opcode == websocket.ABNF.OPCODE_TEXT:
            self._frames.append(json.loads(data))
        elif opcode == websocket.ABNF.OPCODE_PING:
            self._pings.append(data)
        elif opcode == websocket.ABNF.OPCODE_CLOSE:
            code = struct.unpack("!H", data[:2])[0] if len(data) >= 2 else 1006
            self._closed = (code, data[2:].decode("utf-8", "replace"))


def contains(frame, part):
    """Whether `frame` has every member of `part` with the same value (objects inside: the same way)."""
    for name, value in part.items():
        if name not in frame:
            return False
        if isinstance(value, dict) and isinstance(frame[name], dict):
            if not contains(frame[name], value):
                return False
        elif frame[name] != value:
            return False
    return True
