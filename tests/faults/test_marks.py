# SPDX-License-Identifier: Apache-2.0
"""A mark reaches the user's other devices, whichever part fails: no badge stays wrong."""
import contextlib

import pytest

from tests.faults.proxy import Proxy
from tests.support.environment import end_of
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 10


class Desk:
    """A reader with a device on each instance, and a second user who posts."""

    def __init__(self, parts, *urls):
        self.parts = parts
        workspace = Workspace(parts.urls, parts.operator_token)
        self.author, reader = workspace.users(2)
        self.sides = [reader.at(url) for url in urls or parts.urls]
        self.channel = workspace.channel(self.author, reader)
        self.sockets = []

    def open(self):
        self.sockets += [side.socket(native=n == 0) for n, side in enumerate(self.sides)]

    def close(self):
        for socket in self.sockets:
            socket.close()
        self.sockets = []

    def mark(self, side=0):
        """Marks a new message as read; returns the mark that every device must receive."""
        return self.mark_of(self.author.post(self.channel), side)

    def mark_of(self, ts, side=0):
        reply = self.sides[side].ok("channels.mark", channel=self.channel, ts=ts)
        return {"type": "channel_marked", "channel": self.channel, "last_read": reply["last_read"], "unread_count": 0}

    def expect(self, mark):
        for socket in self.sockets:
            socket.expect(mark)


@pytest.fixture
def desk(parts):
    desk = Desk(parts)
    yield desk
    desk.close()


@pytest.fixture
def database(parts):
    with parts.database() as connection:
        yield connection


def test_marks_right_after_hello(desk):
    """After its hello, a device receives all later events."""
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
        wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), what="a subscriber")
        desk.expect(desk.mark(number % 2))


def test_marks_by_an_instance_that_is_killed_at_once(parts, desk):
    """The other instance delivers the marks that were committed but not delivered."""
    desk.open()
    for _ in range(3):
        mark = desk.mark(0)
        parts.instances[0].kill()
        desk.sockets[1].expect(mark)
        parts.instances[0].start()


def test_a_mark_that_redis_refuses_to_publish(parts, desk):
    """Redis has the cursor, but the frame was not published: the mark is not complete."""
    desk.open()
    post = desk.author.post(desk.channel)
    parts.redis.cli("ACL", "SETUSER", "default", "-spublish")
    try:
        mark = desk.mark_of(post)
    finally:
        parts.redis.cli("ACL", "SETUSER", "default", "+spublish")
    desk.expect(mark)


def test_a_mark_while_an_earlier_sweep_is_under_way(parts, desk, database):
    """The sweep has read the cursors before; another sweep finds the mark."""
    desk.open()
    desk.expect(desk.mark())  # so that the gateways know since when
    post = desk.author.post(desk.channel)
    with parts.database() as other, other.transaction():
        other.execute("LOCK TABLE thread_members IN ACCESS EXCLUSIVE MODE")
        parts.redis.kill()
        wait_until(lambda: sweeps_that_wait(database) >= 2, what="a sweep on each instance")
        mark = desk.mark_of(post)
        database.execute("DELETE FROM outbox")  # published while nobody listened
        parts.redis.start()
        wait_until(lambda: subscribers(parts) >= 2, what="both to listen")
    desk.expect(mark)


def sweeps_that_wait(database):
    return database.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                            "AND query LIKE '%thread_event%'").fetchone()[0]


def subscribers(parts):
    return parts.redis.cli("CLIENT", "LIST", "TYPE", "pubsub").count("ssub=")


def test_a_mark_that_left_the_outbox_late(parts, desk, database):
    """It was published long after its commit, at a moment without a subscriber."""
    desk.open()
    desk.expect(desk.mark())
    post = desk.author.post(desk.channel)
    with no_relay(database):
        parts.redis.cli("ACL", "SETUSER", "default", "-spublish")
        mark = desk.mark_of(post)
        wait_until(lambda: age_of_the_outbox(database) > 4, what="a late row")
        parts.redis.kill()
        database.execute("DELETE FROM outbox")
        parts.redis.start()
    desk.expect(mark)


@contextlib.contextmanager
def no_relay(database):
    """No instance takes leftover outbox rows."""
    whole, = database.execute("SELECT pg_get_functiondef('outbox_leftovers'::regproc)").fetchone()
    head = whole[:whole.index("AS $")]
    database.execute(head + "AS 'SELECT NULL::text WHERE false'")
    try:
        yield
    finally:
        database.execute(whole)


def age_of_the_outbox(database):
    """In seconds."""
    age, = database.execute("SELECT extract(epoch FROM now() - min(created)) FROM outbox WHERE NOT done").fetchone()
    return age or 0


def test_a_mark_right_after_the_first_hello_while_redis_is_dead(parts):
    """Nobody was connected to this instance before."""
    instance = parts.instance()
    try:
        desk = Desk(parts, instance.url)
        parts.redis.kill()
        desk.open()
        desk.expect(desk.mark())
        desk.close()
    finally:
        parts.redis.start()
        trouble = end_of(instance)
    assert not trouble


def test_messages_read_one_by_one_while_redis_is_dead(parts, desk, database):
    """By a reader without any earlier mark."""
    desk.open()
    ts = desk.author.post(desk.channel)
    desk.author.post(desk.channel)
    parts.redis.kill()
    reply = desk.sides[0].ok("channels.markMessages", channel=desk.channel, ts=[ts])
    database.execute("DELETE FROM outbox")  # published while nobody listened
    parts.redis.start()
    desk.expect({"type": "channel_marked", "channel": desk.channel, "last_read": reply["last_read"], "unread_count": 1})


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
    desk.sockets[0].expect({"type": "thread_marked", **thread, "last_read": ts, "unread_count": 0})


def test_marks_of_threads_while_pubsub_connections_die(parts, desk):
    desk.open()
    root = desk.author.post(desk.channel)
    desk.sides[0].ok("threads.follow", channel=desk.channel, thread_ts=root)
    thread = {"channel": desk.channel, "thread_ts": root}
    for number in range(ROUNDS):
        ts = desk.author.post(desk.channel, thread_ts=root)
        wait_until(lambda: int(parts.redis.cli("CLIENT", "KILL", "TYPE", "pubsub")), what="a subscriber")
        desk.sides[number % 2].ok("threads.mark", ts=ts, **thread)
        desk.sockets[0].expect({"type": "thread_marked", **thread, "last_read": ts})


def test_a_device_that_connects_while_redis_is_dead(parts, desk):
    parts.redis.kill()
    desk.open()
    parts.redis.start()
    desk.expect(desk.mark())


class LateDesk(Desk):
    """One of its sides is on an instance that receives marks but not messages from Redis."""

    def __init__(self, parts, instance, redis):
        super().__init__(parts, parts.urls[0], instance.url)
        self.redis = redis

    def lost_post(self):
        ts = self.author.post(self.channel)
        wait_until(lambda: ts.encode() in self.redis.lost, what="the message lost") # what comes along is lost, too
        return ts


@pytest.fixture
def late_desk(parts):
    with Proxy("127.0.0.1", parts.redis.port) as redis:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{redis.port}")
        desk = LateDesk(parts, instance, redis)
        desk.open()
        redis.lose("channel-events:{")
        yield desk
        desk.close()
        assert end_of(instance) == []


def test_marks_wait_for_their_messages(late_desk):
    """The mark reveals the missing messages, which are then read from Postgres."""
    late, sent = late_desk.sockets[1], []
    for _ in range(ROUNDS):
        late_desk.expect(late_desk.mark_of(late_desk.lost_post()))
    for frame in late.frames:
        if frame["type"] == "message":
            sent.append(frame["ts"])
        elif frame["type"] == "channel_marked":
            assert frame["last_read"] in sent


def test_a_mark_back_goes_before_one_that_waits(late_desk):
    """A markUnread is not followed by the mark that it took back."""
    late = late_desk.sockets[1]
    reader = late_desk.sides[0]
    first = late_desk.lost_post()
    late_desk.expect(late_desk.mark_of(first))
    for _ in range(ROUNDS):
        second = late_desk.lost_post()
        reader.ok("channels.mark", channel=late_desk.channel, ts=second)
        reader.ok("channels.markUnread", channel=late_desk.channel, ts=first)
        late.expect({"type": "message", "ts": second})
    late_desk.expect(late_desk.mark_of(late_desk.lost_post()))
    epochs = [frame["read_epoch"] for frame in late.frames if frame["type"] == "channel_marked"]
    assert epochs == sorted(epochs) and epochs[-1] == ROUNDS
