# SPDX-License-Identifier: Apache-2.0
"""A mark reaches the user's other devices whatever happens to the way it goes: no badge stays wrong."""
import pytest

from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 10


class Desk:
    """A reader with a device on each instance, and somebody who posts."""

    def __init__(self, parts):
        self.parts = parts
        workspace = Workspace(parts.urls, parts.operator_token)
        self.author, reader = workspace.users(2)
        self.sides = [reader, reader.at(workspace.urls[1])]
        self.channel = workspace.channel(self.author, reader)
        self.sockets = []

    def open(self):
        self.sockets += [side.socket(native=n == 0) for n, side in enumerate(self.sides)]

    def close(self):
        for socket in self.sockets:
            socket.close()
        self.sockets = []

    def mark(self, side=0):
        """Marks a new message as read; returns the mark that every device has to be told."""
        reply = self.sides[side].ok("channels.mark", channel=self.channel, ts=self.author.post(self.channel))
        return {"type": "channel_marked", "channel": self.channel, "last_read": reply["last_read"], "unread_count": 0}

    def expect(self, mark):
        for socket in self.sockets:
            socket.expect(mark, timeout=10)


@pytest.fixture
def desk(parts):
    desk = Desk(parts)
    yield desk
    desk.close()


def test_marks_right_after_hello(desk):
    """A device that was greeted hears of all that comes after."""
    for number in range(ROUNDS):
        desk.open()
        desk.expect(desk.mark(number % 2))
        desk.close()


def test_marks_while_redis_is_dead(parts, desk):
    desk.open()
    parts.redis.kill()
    marks = [desk.mark(0), desk.mark(1)]
    parts.redis.start()
    desk.expect(marks[-1])


def test_marks_right_after_redis_is_back(parts, desk):
    desk.open()
    parts.redis.kill()
    parts.redis.start()
    desk.expect(desk.mark())


def test_marks_while_pubsub_connections_die(parts, desk):
    desk.open()
    for number in range(ROUNDS):
        wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), 10, what="a subscriber")
        desk.expect(desk.mark(number % 2))


def test_marks_by_an_instance_that_is_killed_at_once(parts, desk):
    """What it had committed and not told is told by the other one."""
    desk.open()
    for _ in range(3):
        mark = desk.mark(0)
        parts.instances[0].kill()
        desk.sockets[1].expect(mark, timeout=10)
        parts.instances[0].start()


def test_marks_of_threads_while_redis_is_dead(parts, desk):
    desk.open()
    root = desk.author.post(desk.channel)
    desk.sides[0].ok("threads.follow", channel=desk.channel, thread_ts=root)
    thread = {"channel": desk.channel, "thread_ts": root}
    desk.sockets[0].expect({"type": "thread_subscribed", **thread})
    parts.redis.kill()
    ts = desk.author.post(desk.channel, thread_ts=root)
    assert desk.sides[1].ok("threads.mark", ts=ts, **thread)["unread_count"] == 0
    parts.redis.start()
    desk.sockets[0].expect({"type": "thread_marked", **thread, "last_read": ts, "unread_count": 0}, timeout=10)


def test_marks_of_threads_while_pubsub_connections_die(parts, desk):
    desk.open()
    root = desk.author.post(desk.channel)
    desk.sides[0].ok("threads.follow", channel=desk.channel, thread_ts=root)
    thread = {"channel": desk.channel, "thread_ts": root}
    for number in range(ROUNDS):
        ts = desk.author.post(desk.channel, thread_ts=root)
        wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), 10, what="a subscriber")
        desk.sides[number % 2].ok("threads.mark", ts=ts, **thread)
        desk.sockets[0].expect({"type": "thread_marked", **thread, "last_read": ts}, timeout=10)


def test_a_device_that_connects_while_redis_is_dead(parts, desk):
    parts.redis.kill()
    desk.open()
    parts.redis.start()
    desk.expect(desk.mark())
