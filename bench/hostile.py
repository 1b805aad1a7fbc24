#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends large bodies on several connections at a given number of bytes a second, and prints the answers."""
import argparse
import collections
import json
import os
import socket
import threading
import time

TIMEOUT_S = 20
LINK_BYTES_PER_S = 125_000_000  # 1 Gbit/s
PIECE = 65536
NICE = 19  # as from another machine: it gets the time of this one's cores that nobody wants


def filled(head, unit, tail, size):
    return (head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail).encode()


def body_of(kind, size, channel):
    """Content type and body of about `size` bytes."""
    if kind == "form":
        return "application/x-www-form-urlencoded", filled("a=", "%41&b=", "c", size)
    if kind == "post":
        return "application/json", filled(f'{{"channel":"{channel}","attachments":[{{"text":"', "x", '"}]}', size)
    head, unit, tail = {
        "arrays": ('{"a":[', "[],", "1]}"),
        "numbers": ('{"a":[', "1,", "1]}"),
        "nested": ('{"a":[', '[[[[{"a":[[[1]]]}]]]],', "1]}"),
        "blocks": (f'{{"channel":"{channel}","blocks":"', '[\\"', '"}'),
    }[kind]
    return "application/json", filled(head, unit, tail, size)


KINDS = ("arrays", "numbers", "nested", "blocks", "form")


def request_of(options, kind):
    content_type, body = body_of(kind, options.size, options.channel)
    token = f"Authorization: Bearer {options.token}\r\n" if options.token else ""
    head = (f"POST /api/chat.postMessage HTTP/1.1\r\nHost: bench\r\n{token}Content-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


class Sender(threading.Thread):
    """One connection, reopened when the server closes it."""

    def __init__(self, options, number, answers):
        super().__init__(daemon=True)
        self.options = options
        self.answers = answers
        self.kinds = [options.kind] if options.kind else KINDS
        self.number = number
        self.link = None

    def send(self, request):
        """No faster than the share of the link that all these connections come by."""
        pause = PIECE * self.options.connections / LINK_BYTES_PER_S
        began = time.monotonic()
        for number, start in enumerate(range(0, len(request), PIECE)):
            time.sleep(max(0, began + number * pause - time.monotonic()))
            self.link.sendall(request[start:start + PIECE])

    def exchange(self, request):
        if self.link is None:
            self.link = socket.create_connection(("127.0.0.1", self.options.port), timeout=TIMEOUT_S)
        try:
            self.send(request)
        except OSError:
            pass  # an answer may be there all the same
        reply = self.link.recv(65536)
        if b"Connection: close" in reply or not reply:
            self.link.close()
            self.link = None
        line, _, rest = reply.partition(b"\r\n")
        _, _, body = rest.partition(b"\r\n\r\n")
        try:
            error = json.loads(body).get("error", "ok")
        except ValueError:
            error = "?"
        return f"{line.decode().split(' ')[1] if line else 'closed'} {error}"

    def run(self):
        options = self.options
        interval = options.connections * options.size / options.bytes_per_s if options.bytes_per_s else 0
        start = time.monotonic() + interval * self.number / options.connections
        requests = [request_of(options, kind) for kind in self.kinds]
        for turn in range(options.total or 1_000_000):
            due = start + turn * interval
            if due > options.until:
                break
            time.sleep(max(0, due - time.monotonic()))
            try:
                answer = self.exchange(requests[(turn + self.number) % len(requests)])
            except OSError as error:
                self.link = None
                answer = type(error).__name__
            self.answers[answer] += 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--channel", default="C1")
    parser.add_argument("--kind", choices=(*KINDS, "post"), help="default: all kinds but post, in turn")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--size", type=int, default=2_000_000, help="size of a body in bytes (%(default)s)")
    parser.add_argument("--bytes-per-s", type=int, default=12_000_000, help="0: no limit (%(default)s)")
    parser.add_argument("--total", type=int, help="requests per connection; default: until --seconds have passed")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    options.until = time.monotonic() + options.seconds
    return options


def main():
    options = parse()
    os.nice(NICE)
    answers = collections.Counter()
    senders = [Sender(options, number, answers) for number in range(options.connections)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(max(0, options.until + TIMEOUT_S - time.monotonic()))
    print(json.dumps({"answers": dict(answers)}))


if __name__ == "__main__":
    main()
