# SPDX-License-Identifier: Apache-2.0
"""However a client catches up, and wherever it is cut: in the end it has exactly the events of its channels."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.catching_up import WAYS, Reader
from tests.property.conftest import BASE
from tests.support.catch_up import channel_of
from tests.support.workspace import Workspace

CHANNELS = 3
rooms = st.integers(0, CHANNELS - 1)
counts = st.integers(1, 5)
ways = st.sampled_from(WAYS)
steps = st.lists(st.one_of(
    st.tuples(st.just("post"), rooms, st.integers(1, 4)),
    st.tuples(st.sampled_from(["edit", "delete", "mark", "leave", "join"]), rooms, st.just(1)),
    st.tuples(st.just("cut"), ways, counts)), min_size=8, max_size=24)


class Life:
    """Actions of ann in channels, and of bob, who receives them on another device."""

    def __init__(self, environment):
        self.workspace = Workspace(environment.urls, environment.operator_token)
        self.ann, self.bob = self.workspace.users(2)
        self.rooms = [self.workspace.channel(self.ann, self.bob) for _ in range(CHANNELS)]
        self.posts = {room: [self.ann.post(room)] for room in self.rooms}
        self.reader = Reader(environment.urls, self.bob)
        self.start = {room: self.events(room, 0)[-1]["seq"] for room in self.rooms}

    def events(self, room, after):
        return self.ann.ok("channels.events", channel=room, after_seq=after, limit=1000)["events"]

    def told(self, room):
        """(required seqs, allowed seqs): while bob is not a member, no event is for him; of a channel that he left, only his leave is
        required."""
        must, may, away = set(), set(), False
        for event in self.events(room, self.start[room]):
            own = event.get("user") == self.bob.id
            if own and event["type"] == "member_joined_channel":
                away = False
            if not away:
                may.add(event["seq"])
                must.add(event["seq"])
            if own and event["type"] == "member_left_channel":
                away, must = True, {event["seq"]}
            elif own and event["type"] == "member_joined_channel":
                must = {event["seq"]}
        return must, may

    def wanted(self):
        return {room: self.told(room)[0] for room in self.rooms}

    def do(self, what, which, count):
        if what == "cut":
            self.reader.connect(which, count, self.wanted())
            return
        room = self.rooms[which]
        getattr(self, what)(room, count)

    def post(self, room, count):
        self.posts[room] += [self.ann.post(room, f"{n}") for n in range(count)]

    def edit(self, room, _):
        self.ann.ok("chat.update", channel=room, ts=self.posts[room][-1], text=f"edited {len(self.posts[room])}")

    def delete(self, room, _):
        if len(self.posts[room]) > 1:
            self.ann.ok("chat.delete", channel=room, ts=self.posts[room].pop())

    def mark(self, room, _):
        self.bob.call("channels.mark", channel=room, ts=self.posts[room][-1])

    def leave(self, room, _):
        self.bob.call("channels.leave", channel=room)

    def join(self, room, _):
        self.bob.call("channels.join", channel=room)

    def check(self):
        for room in self.rooms:
            must, may = self.told(room)
            seen = {seq for seq in self.reader.seen.get(room, ()) if seq > self.start[room]}
            assert must <= seen <= may, (room, sorted(must - seen), sorted(seen - may))
        later = self.bob.ok("events.sync", since=self.reader.position, limit=1000)
        assert not later["has_more"] and not later["gaps"]
        again = {(channel_of(event), event["seq"]) for event in later["events"] if "seq" in event}
        assert again <= {(room, seq) for room, seqs in self.reader.seen.items() for seq in seqs}, "something was missed"


def live(services, did, way, count):
    services.all_up()
    life = Life(services.environment)
    for step in did:
        life.do(*step)
    life.reader.finish(way, count, life.wanted())
    life.check()


def test_catching_up(services):
    settings(BASE, max_examples=8)(given(steps, ways, counts)(lambda did, way, count: live(services, did, way, count)))()


@pytest.mark.long
def test_catching_up_for_long(services):
    settings(BASE, max_examples=400)(given(steps, ways, counts)(lambda did, way, count: live(services, did, way, count)))()
