# SPDX-License-Identifier: Apache-2.0
"""Rows of Postgres that another session locks: only requests that need them wait."""
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.metrics import metric
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

OTHERS = 10  # calls elsewhere while the row is locked

CHANNEL = "SELECT FROM channels WHERE id = %(channel)s FOR UPDATE"
HOT = "SELECT FROM hot_heads WHERE channel_id = %(channel)s FOR UPDATE"
MEMBER = "SELECT FROM channel_members WHERE channel_id = %(channel)s AND user_id = %(user)s FOR UPDATE"


class Place:
    """A channel with messages of ann's to edit and of bob's to mark. Unless it is hot, its head is in its own row: after an edit."""

    def __init__(self, workspace, ann, bob, hot=False):
        self.channel = workspace.channel(ann, bob)
        self.edited = [ann.post(self.channel, f"draft {n}") for n in range(2)]
        self.marked = [bob.post(self.channel, f"to read {n}") for n in range(2)]
        if not hot:
            Work("edit", self)(ann, 0)


class Work:
    """Calls of one kind at a place, by ann."""

    def __init__(self, kind, place):
        self.kind = kind
        self.place = place

    def __call__(self, ann, number):
        channel = self.place.channel
        if self.kind == "post":
            return ann.call("chat.postMessage", channel=channel, text=f"post {number}")
        if self.kind == "edit":
            return ann.call("chat.update", channel=channel, ts=self.place.edited[number % 2], text=f"edit {number}")
        return ann.call("channels.mark", channel=channel, ts=self.place.marked[number % 2])


@contextlib.contextmanager
def locked(parts, row, **names):
    """Another session holds the row until the end of the block, or until release()."""
    with parts.database() as database:
        database.autocommit = False
        assert database.execute(row, names).rowcount == 1
        yield database.rollback


def heat(parts, place, bob):
    """On a slow machine posts may be too far apart."""
    with parts.database() as database:
        wait_until(lambda: database.execute("SELECT FROM hot_heads WHERE channel_id = %s", [place.channel]).fetchone() is not None
                   or not bob.post(place.channel), what="a hot channel")


def put_aside(instance):
    return metric(instance, "tidings_store_locked_total")


@pytest.fixture
def people(parts):
    workspace = Workspace(parts.urls, parts.operator_token)
    ann, bob = workspace.users(2)
    return workspace, ann, bob


@pytest.mark.parametrize("count", [1, 4, 50])
@pytest.mark.parametrize("row, kind", [(CHANNEL, "post"), (CHANNEL, "edit"), (HOT, "post"), (HOT, "edit"), (MEMBER, "post"), (MEMBER, "mark")],
                         ids=["post-channel", "edit-channel", "post-hot", "edit-hot", "post-member", "mark-member"])
def test_only_those_wait_who_need_the_row(parts, people, row, kind, count):
    with parts.held_snapshot() if row == HOT else contextlib.nullcontext():
        only_those_wait(parts, people, row, kind, count)


def only_those_wait(parts, people, row, kind, count):
    workspace, ann, bob = people
    elsewhere = Place(workspace, ann, bob)
    place = Place(workspace, ann, bob, hot=row == HOT)
    if row == HOT:
        heat(parts, place, bob)
    [here, there] = parts.instances
    before = put_aside(here)
    with ThreadPoolExecutor(count) as pool, locked(parts, row, channel=place.channel, user=ann.id) as release:
        waiting = [pool.submit(Work(kind, place), ann, number) for number in range(count)]
        wait_until(lambda: put_aside(here) > before, what="somebody who waits for the row")
        for instance in (here, there):
            for number in range(OTHERS):
                for other in ("post", "edit", "mark"):
                    reply = Work(other, elsewhere)(ann.at(instance.url), number)
                    assert reply["ok"], (other, reply)
                if row == MEMBER:
                    assert bob.at(instance.url).post(place.channel)
        if (row, kind) != (MEMBER, "post"):  # once the transaction is old and bob has posted, the channel is hot, and ann's row is not needed
            assert not any(call.done() for call in waiting)
        release()
        assert [call.result()["ok"] for call in waiting] == [True] * count
    assert ann.post(place.channel)


def test_posts_that_waited_keep_their_order(parts, people):
    """Also posts that arrived when the row was free again, while others still waited."""
    workspace, ann, bob = people
    channel = workspace.channel(ann, bob)
    texts = [f"{number}" for number in range(14)]
    before = put_aside(parts.instances[0])
    with ann.socket() as socket:
        with locked(parts, CHANNEL, channel=channel) as release:
            for number, text in enumerate(texts[:7]):
                socket.send({"id": number + 1, "type": "message", "channel": channel, "text": text})
            wait_until(lambda: put_aside(parts.instances[0]) > before, what="posts that wait")
            release()
        for number, text in enumerate(texts[7:], 7):
            socket.send({"id": number + 1, "type": "message", "channel": channel, "text": text})
        for number in range(len(texts)):
            reply = socket.expect({"reply_to": number + 1})
            assert reply["ok"], reply
    said = [message["text"] for message in bob.history(channel, limit=100) if message["text"] in texts]
    assert said[::-1] == texts


def test_who_waits_too_long_is_told_so(parts, people):
    """After the deadline, and once the row is free, nothing of it is left."""
    workspace, ann, bob = people
    instance = parts.instance(statement_timeout_ms=1000)
    try:
        ann = ann.at(instance.url)
        place = Place(workspace, ann, bob)
        with locked(parts, CHANNEL, channel=place.channel) as release:
            assert ann.call("chat.update", channel=place.channel, ts=place.edited[0], text="late")["error"] == "service_unavailable"
            assert ann.call("chat.postMessage", channel=place.channel, text="late")["error"] == "service_unavailable"
            release()
        assert ann.post(place.channel, "in time")
        texts = [message["text"] for message in bob.history(place.channel)]
        assert texts[0] == "in time" and "late" not in texts
    finally:
        assert instance.stop() == 0


def test_an_instance_stops_while_posts_wait(parts, people):
    workspace, ann, bob = people
    instance = parts.instance(drain_ms=200)
    channel = workspace.channel(ann, bob)
    with ThreadPoolExecutor(2) as pool, locked(parts, CHANNEL, channel=channel):
        post = pool.submit(ann.at(instance.url).call, "chat.postMessage", channel=channel, text="stuck")
        topic = pool.submit(ann.at(instance.url).call, "channels.setTopic", channel=channel, topic="stuck")
        wait_until(lambda: put_aside(instance) >= 2, what="both put aside")
        assert instance.stop() == 0
        for call in (post, topic):
            assert call.exception() or not call.result()["ok"]
