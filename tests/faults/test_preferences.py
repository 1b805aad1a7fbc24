# SPDX-License-Identifier: Apache-2.0
"""Notification settings and edited mentions reach the user's native devices through every fault."""
import pytest

from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 6


class Desk:
    """A reader without any marks, with a native device on each instance, and a second user who posts."""

    def __init__(self, parts):
        workspace = Workspace(parts.urls, parts.operator_token)
        self.author, reader = workspace.users(2)
        self.sides = [reader, reader.at(workspace.urls[1])]
        self.channel = workspace.channel(self.author, reader)
        self.sockets = []

    def open(self):
        self.sockets += [side.socket(native=True) for side in self.sides]

    def close(self):
        for socket in self.sockets:
            socket.close()

    def mute(self, muted, side=0):
        """Retries until it succeeds: a service may just be recovering."""
        args = {"channel": self.channel, "muted": muted}
        wait_until(lambda: self.sides[side].call("channels.setNotifications", **args)["ok"], what="the mute")

    def last(self, socket, name):
        """The content of the last unread_changed."""
        return [frame[name] for frame in socket.matching({"type": "unread_changed", "channel": self.channel})][-1:]

    def expect(self, **shown):
        for socket in self.sockets:
            wait_until(lambda s=socket: all(self.last(s, name) == [value] for name, value in shown.items()), what=shown)


@pytest.fixture
def desk(parts):
    desk = Desk(parts)
    yield desk
    desk.close()


def test_while_redis_is_dead(parts, desk):
    desk.open()
    ts = desk.author.post(desk.channel)
    parts.redis.kill()
    desk.mute(True, 1)
    desk.author.ok("chat.update", channel=desk.channel, ts=ts, text=f"<@{desk.sides[0].id}>")
    desk.expect(is_muted=True, mention_count=1)
    parts.redis.start()
    desk.mute(False)
    desk.expect(is_muted=False, mention_count=1)


def test_while_pubsub_connections_die(parts, desk):
    desk.open()
    for number in range(ROUNDS):
        wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), what="a subscriber")
        desk.mute(number % 2 == 0, number % 2)
        desk.expect(is_muted=number % 2 == 0)


def test_by_an_instance_that_is_killed_at_once(parts, desk):
    desk.open()
    desk.sockets.pop(0).close()
    for number in range(3):
        desk.mute(number % 2 == 0)
        parts.instances[0].kill()
        desk.expect(is_muted=number % 2 == 0)
        parts.instances[0].start()


def test_while_the_connections_to_postgres_die(parts, desk):
    desk.open()
    for number in range(ROUNDS):
        desk.mute(number % 2 == 0, number % 2)
        parts.postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tidings%'")
        desk.expect(is_muted=number % 2 == 0)
