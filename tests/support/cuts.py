# SPDX-License-Identifier: Apache-2.0
"""A client of an event stream whose connection breaks again and again."""

import json
import time

from tests.support.raw import RawConnection, request

SILENCE_S = 5  # a connection is given up when nothing but comments has come for so long


def read_and_cut(url, token, last_id, take):
    """Opens a stream behind `last_id`, gives its events to `take` as long as that returns true, and then closes the
    connection in the middle of everything. Returns the id to go on with."""
    headers = [f"Last-Event-ID: {last_id}"] if last_id else []
    with RawConnection(url) as raw:
        raw.send(request("GET", "/events", token, headers=headers))
        assert raw.reply(head_only=True).status == 200
        going, deadline = True, time.monotonic() + SILENCE_S
        while going and time.monotonic() < deadline:
            lines = raw.read_through(b"\n\n").decode().splitlines()
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":") and ": " in line)
            if "data" in fields:
                last_id, deadline = fields["id"], time.monotonic() + SILENCE_S
                going = take(json.loads(fields["data"]))
    return last_id


class Cuts:
    """Follows streams, on alternating instances, each of which is cut after `count` events."""

    def __init__(self, urls, token, count):
        self.urls = urls
        self.token = token
        self.count = count
        self.frames = []
        self.connections = 0
        self.last_id = read_and_cut(urls[0], token, None, lambda frame: False)

    def follow(self, is_enough, connections_max):
        """Continues until `is_enough(frame)`, called for each frame, returns true, or no more frames arrive."""
        done, left = False, 0
        while not done and left == 0 and self.connections < connections_max:
            left = self.count

            def take(frame):
                nonlocal left, done
                self.frames.append(frame)
                left -= 1
                done = is_enough(frame)
                return left > 0 and not done

            url = self.urls[self.connections % len(self.urls)]
            self.last_id = read_and_cut(url, self.token, self.last_id, take)
            self.connections += 1
        return done
