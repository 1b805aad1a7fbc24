# SPDX-License-Identifier: Apache-2.0
"""Bytes on a TCP connection: requests and WebSocket frames that no well-behaved client would send."""

import base64
import gzip
import json
import os
import select
import socket
import struct
import time
from urllib.parse import urlsplit

from tests.support.wait import LIMIT_S

TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0


class RawReply:
    """A parsed HTTP reply: status, headers (lower-case names), body bytes."""

    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        pairs = [line.split(":", 1) for line in lines[1:] if line]
        self.headers = {name.strip().lower(): value.strip() for name, value in pairs}
        self.body = body

    @property
    def json(self):
        is_gzip = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if is_gzip else self.body)


class RawConnection:
    """A TCP connection to the instance at `url`. Use it as a context manager."""

    def __init__(self, url, timeout=LIMIT_S):
        parts = urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self._socket = socket.create_connection((self.host, self.port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._socket.close()

    def send(self, data):
        self._socket.sendall(data if isinstance(data, bytes) else data.encode())

    def has_come(self):
        """Whether there is data to read."""
        return bool(self._buffer or select.select([self._socket], [], [], 0)[0])

    def half_close(self):
        """Tells the server that no more data follows."""
        self._socket.shutdown(socket.SHUT_WR)

    def read(self, size):
        """Exactly `size` bytes; EOFError when the server closes before."""
        while len(self._buffer) < size:
            self._fill()
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def read_through(self, mark):
        """The bytes up to and including `mark`."""
        while mark not in self._buffer:
            self._fill()
        return self.read(self._buffer.index(mark) + len(mark))

    def reply(self, head_only=False):
        """The next HTTP reply (an interim 1xx is a reply without a body)."""
        head = self.read_through(b"\r\n\r\n")[:-4]
        reply = RawReply(head, b"")
        if head_only or reply.status < 200 or reply.status in (204, 304):
            return reply
        if reply.headers.get("transfer-encoding", "").lower() == "chunked":
            reply.body = self._chunks()
        elif "content-length" in reply.headers:
            reply.body = self.read(int(reply.headers["content-length"]))
        else:
            reply.body = self.rest()
        return reply

    def rest(self, timeout=20):
        """All bytes until the server closes the connection; fails when it has not done so after `timeout` s."""
        deadline = time.monotonic() + timeout
        try:
            while True:
                left = deadline - time.monotonic()
                assert left > 0, f"still open after {timeout} s"
                self._socket.settimeout(left)
                self._fill()
        except (EOFError, ConnectionError):
            data, self._buffer = self._buffer, b""
            return data
        except socket.timeout as error:
            raise AssertionError(f"still open after {timeout} s, with {self._buffer[:300]!r}") from error

    def _chunks(self):
        body = b""
        while True:
            size = int(self.read_through(b"\r\n").split(b";")[0], 16)
            if size == 0:
                self.read_through(b"\r\n")
                return body
            body += self.read(size)
            self.read(2)

    def _fill(self):
        data = self._socket.recv(65536)
        if not data:
            raise EOFError("the server closed the connection")
        self._buffer += data


def request(verb, target, token=None, content_type=None, body=b"", headers=(), host="127.0.0.1"):
    """The bytes of an HTTP/1.1 request; `headers` are whole lines. A body, or any verb but GET, gets a length."""
    body = body if isinstance(body, bytes) else body.encode()
    lines = [f"{verb} {target} HTTP/1.1", f"Host: {host}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    if body or verb not in ("GET", "HEAD"):
        lines.append(f"Content-Length: {len(body)}")
    lines.extend(headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class RawFrames(RawConnection):
    """A connection that becomes a WebSocket by upgrade(), perhaps after requests; frames are made by hand."""

    def upgrade(self, path, host=None, headers=()):
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host or f'{self.host}:{self.port}'}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            *headers,
        ]
        self.send("\r\n".join(lines) + "\r\n\r\n")
        self.handshake = self.reply(head_only=True)

    def send_frame(self, opcode, payload=b"", final=True, masked=True, length=None):
        """Sends one frame. `length` overrides the length in its header."""
        told = len(payload) if length is None else length
        head = bytes([(0x80 if final else 0) | opcode])
        bit = 0x80 if masked else 0
        if told < 126:
            head += bytes([bit | told])
        elif told < 65536:
            head += bytes([bit | 126]) + struct.pack("!H", told)
        else:
            head += bytes([bit | 127]) + struct.pack("!Q", told)
        if masked:
            mask = os.urandom(4)
            head += mask
            payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.send(head + payload)

    def read_frame(self):
        """The next frame as (opcode, payload); asserts that it is whole and unmasked."""
        first, second = self.read(2)
        assert first & 0x80, "the server fragmented a frame"
        assert not second & 0x80, "the server masked a frame"
        size = second & 0x7F
        if size == 126:
            size = struct.unpack("!H", self.read(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", self.read(8))[0]
        return first & 0x0F, self.read(size)

    def read_until(self, opcode):
        """The payload of the next frame of `opcode`; others are passed over."""
        while True:
            kind, payload = self.read_frame()
            if kind == opcode:
                return payload
            assert kind != CLOSE, f"closed with {payload!r}"

    def close_code(self):
        """Reads to the server's close frame and returns its code."""
        payload = self.read_until(CLOSE)
        return struct.unpack("!H", payload[:2])[0]


class RawWebSocket(RawFrames):
    """A WebSocket from the start. `suffix` is put behind the path of `url`."""

    def __init__(self, url, suffix="", host=None, headers=()):
        super().__init__(url)
        self.upgrade(f"{urlsplit(url).path}{suffix}", host, headers)
