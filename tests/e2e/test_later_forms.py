# SPDX-License-Identifier: Apache-2.0
"""Data that a later release may have written into Redis: every count stays exact, and posts and marks work."""
import pytest

from tests.support.wait import wait_until
from tests.support.workspace import fresh_name

SEQUENCE = {
    "a later cursor": lambda r: r.redis("HSET", r.cursors, r.channel, "v2 1 1717200000000000 900 900 0 1 1"),
    "words after a cursor": lambda r: r.redis("HSET", r.cursors, r.channel, r.redis("HGET", r.cursors, r.channel) + " v2 more"),
    "a later head": lambda r: r.redis("HSET", r.head, "seq", "v2 900", "ord", "v2 900"),
    "unknown fields of a head": lambda r: r.redis("HSET", r.head, "state2", "v2", "seq2", "900"),
    "later deletes": lambda r: r.redis("HSET", r.head, "deleted", "v2 1-900"),
    "words of deletes": lambda r: r.redis("HSET", r.head, "deleted", r.redis("HGET", r.head, "deleted") + ":more"),
    "a later floor": lambda r: r.redis("HSET", r.head, "deleted_floor", "v2 900"),
    "what was heard of": lambda r: r.redis("HSET", r.head, "least", "v2 900"),
}
COUNTED = {
    "a later walk": lambda r: r.redis("HSET", r.walk, "gen", "v2 0", "seq", "v2 900"),
    "unknown fields of a walk": lambda r: r.redis("HSET", r.walk, "more", "v2"),
    "a later build": lambda r: r.redis("HSET", r.walk, "build", "v2"),
    "a later list": lambda r: r.redis("SADD", r.members, "v2:U0000000001"),
}
COUNTER = {**COUNTED, "a later counter": lambda r: r.redis("HSET", r.kept, "n", "v2 900"),
           "unknown fields of a counter": lambda r: r.redis("HSET", r.kept, "n2", "900")}
ZSET = {**COUNTED, "unknown markers": lambda r: r.redis("ZADD", r.kept, "-900", "x2")}
PLANTED = [(strategy, name) for strategy, forms in (("sequence", SEQUENCE), ("counter", COUNTER), ("zset", ZSET)) for name in forms]
FORMS = {"sequence": SEQUENCE, "counter": COUNTER, "zset": ZSET}


class Room:
    """A channel of ann, who posts, and bob, who reads."""

    def __init__(self, environment, workspace, strategy):
        self.redis = environment.redis.cli
        self.environment = environment
        self.ann, self.bob = workspace.users(2)
        self.channel = self.ann.ok("channels.create", name=fresh_name("later"), strategy=strategy)["channel"]["id"]
        self.ann.ok("channels.invite", channel=self.channel, users=[self.bob.id])
        self.head, self.walk = f"channel-latest:{{{self.channel}}}", f"channel-walk:{{{self.channel}}}"
        self.cursors, self.members = f"read_cursor:{{{self.bob.id}}}", f"channel:members:{{{self.channel}}}"
        self.kept = f"unread:{{{self.bob.id}}}:{self.channel}"

    def shows(self, count):
        for member in (self.bob, self.bob.at(self.environment.urls[1])):
            assert member.ok("channels.info", channel=self.channel)["channel"]["unread_count"] == count

    def deletes(self, ts):
        """Counts are by what Redis keeps of deletes then, where it may be believed."""
        self.ann.ok("chat.delete", channel=self.channel, ts=ts)
        self.environment.wait_fanned_out(self.channel)


@pytest.mark.parametrize("strategy, name", PLANTED)
def test_a_value_in_a_later_form(environment, workspace, strategy, name):
    room = Room(environment, workspace, strategy)
    plant = FORMS[strategy][name]
    with room.bob.socket(native=True) as socket:
        posted = [room.ann.post(room.channel) for _ in range(4)]
        room.deletes(posted[1])
        room.shows(3)
        room.shows(3)  # by what was just installed
        plant(room)
        room.shows(3)
        plant(room)
        posted += [room.ann.post(room.channel) for _ in range(2)]
        room.deletes(posted[2])
        room.shows(4)
        plant(room)
        room.bob.ok("channels.mark", channel=room.channel, ts=posted[3])
        environment.wait_fanned_out(room.channel)
        room.shows(2)
        room.ann.post(room.channel)
        room.shows(3)
        wait_until(lambda: len(socket.matching({"type": "message", "channel": room.channel})) >= 7, what="all messages")


def test_presence_and_threads_in_a_later_form(environment, workspace):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    environment.redis.cli("HSET", f"session:{{{bob.id}}}:device", "later", "v2 9999999999")
    environment.redis.cli("HSET", f"presence:{{{bob.id}}}", "manual", "v2 away", "more", "x")
    with bob.socket():
        wait_until(lambda: ann.ok("users.getPresence", user=bob.id)["presence"] == "active", what="bob active")
    root = ann.post(channel)
    reply = ann.post(channel, thread_ts=root)
    key = f"thread-read:{{{bob.id}}}:{channel}:{root}"
    environment.redis.cli("SET", key, "v2 9999999999999999")
    bob.ok("threads.follow", channel=channel, thread_ts=root)
    bob.ok("threads.mark", channel=channel, thread_ts=root, ts=reply)
    wait_until(lambda: environment.redis.cli("GET", key) == reply.replace(".", ""), what="the mark in Redis")
