# SPDX-License-Identifier: Apache-2.0
"""What sockets get of events that an instance could not hear: all of them, or word of the gap."""
import pytest

from tests.faults.proxy import Proxy
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

EVENTS, READS = 5, 2
NEVER_MS = 600_000


class Room:
    """A reader with a native and another socket on `instance`; the author is on another one."""

    def __init__(self, parts, instance):
        workspace = Workspace(parts.urls, parts.operator_token)
        self.author, self.reader = workspace.users(2)
        self.channel = workspace.channel(self.author, self.reader)
        there = self.reader.at(instance.url)
        self.native, self.other = there.socket(native=True), there.socket()

    def post(self, count):
        """Posts, and returns the seqs."""
        return [self.author.ok("chat.postMessage", channel=self.channel, text="x")["seq"] for _ in range(count)]

    def seqs(self, socket):
        return [frame["seq"] for frame in socket.matching({"type": "message", "channel": self.channel})]

    def close(self):
        self.native.close()
        self.other.close()


@pytest.fixture
def deaf(parts):
    """(proxy, room, instance): the instance learns what it did not hear when it finds its connections to Redis dead,
    or at the turn of a round of the heads in Postgres, and then all of it at once."""
    with Proxy("127.0.0.1", parts.redis.port) as proxy:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{proxy.port}", head_check_ms=NEVER_MS,
                                  hole_events_max=EVENTS, hole_reads_max=READS)
        room = Room(parts, instance)
        try:
            first = room.post(1)
            for socket in (room.native, room.other):
                socket.expect({"type": "message", "seq": first[0]})
            yield proxy, room
        finally:
            proxy.set_mode("pass")
            room.close()
            assert instance.stop() == 0


def test_a_hole_at_the_bound_is_filled(deaf):
    proxy, room = deaf
    proxy.set_mode("blackhole")
    missed = room.post(EVENTS * READS)
    for socket in (room.native, room.other):
        wait_until(lambda s=socket: room.seqs(s)[1:] == missed, 15, what="all that was missed")
        assert not socket.matching({"type": "gap"}) and socket.is_open


def test_a_larger_hole_is_a_gap(deaf):
    """Told to native sockets, which read on; others are closed, so that their clients read what there is."""
    proxy, room = deaf
    proxy.set_mode("blackhole")
    missed = room.post(EVENTS * READS + 1)
    gap = {"type": "gap", "channel": room.channel, "from_seq": missed[0], "to_seq": missed[-1]}
    room.native.expect(gap, timeout=15)
    assert room.other.wait_closed(15)[0] == 1012
    after = room.post(1)
    room.native.expect({"type": "message", "seq": after[0]}, timeout=15)
    assert room.seqs(room.native)[1:] == after and room.seqs(room.other)[1:] == []
