# SPDX-License-Identifier: Apache-2.0
"""Event streams that go on, by Last-Event-ID, on another instance than the one they began on."""
import random
import signal

import pytest

from tests.faults.followers import all_came, heads
from tests.faults.proxy import Proxy
from tests.support.reading import is_event
from tests.support.streams import Stream
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

KILLS = 6
NEVER_MS = 600_000


def test_kills_under_load_leave_no_hole(parts, load, followers):
    since = heads(load)
    chance = random.Random(3)
    for number in range(KILLS):
        victim = parts.instances[number % 2]
        load.wait_acked(chance.randrange(5, 60))
        victim.kill()
        load.wait_acked(20)
        victim.start()
    assert all(follower.opened > 1 for follower in followers)
    all_came(load, followers, since)
    load.settle()
    load.judge()


def test_cut_off_again_and_again_under_load(load, followers):
    """Cuts come while the last one is still being made good."""
    since = heads(load)
    chance = random.Random(4)
    for _ in range(60):
        chance.choice(followers).cut()
        load.wait_acked(chance.randrange(1, 12))
    all_came(load, followers, since)
    load.settle()
    load.judge()


def test_what_was_untold_when_its_instance_died(parts, load, followers):
    """Committed while Redis stood still; the stream is cut before anybody could hear of it."""
    since = heads(load)
    load.stop()
    parts.redis.kill(signal.SIGSTOP)
    for channel in load.channels:
        for number in range(3):
            load.post(load.people[0][0], channel, f"untold {number} in {channel}")
    parts.instances[0].kill()
    for follower in followers:
        follower.cut()
    parts.redis.kill(signal.SIGCONT)
    parts.instances[0].start()
    all_came(load, followers, since)


class Comings:
    """A private channel on an instance behind proxies, in which one stays and another, by an event stream, comes and
    goes."""

    def __init__(self, parts, instance, redis, postgres):
        self.redis, self.postgres = redis, postgres
        self.url = instance.url
        workspace = Workspace(parts.urls, parts.operator_token)
        self.author, self.staying, self.reader = workspace.users(3)
        self.channel = workspace.channel(self.author, self.staying, self.reader, private=True)
        self.socket = self.staying.at(self.url).socket(native=True)
        with Stream(self.url, self.reader.token) as first:
            wait_until(lambda: self.post("tick") and first.last_id, what="an id")
            self.last_id = first.close()
        self.told = self.post("told")
        self.heard(self.told)

    def post(self, text):
        return self.author.ok("chat.postMessage", channel=self.channel, text=text)["seq"]

    def heard(self, seq):
        """The instance has sent all up to there."""
        self.socket.expect({"channel": self.channel, "seq": seq})

    def kick(self):
        self.author.ok("channels.kick", channel=self.channel, user=self.reader.id)
        return self.told + 1

    def bring_back(self):
        self.post("not for the reader")
        self.author.ok("channels.invite", channel=self.channel, users=[self.reader.id])
        return self.told + 3

    def resumed(self):
        return Stream(self.url, self.reader.token, self.last_id)

    def check(self, stream, seqs):
        """The stream got these, in this order, of all after the id, and goes on."""
        last = self.post("last")
        stream.expect({"channel": self.channel, "seq": last})
        got = [f["seq"] for f in stream.frames if is_event(f) and f["channel"] == self.channel and f["seq"] >= self.told]
        assert got == [*seqs, last]
        assert not stream.matching({"text": "not for the reader"}) and not stream.matching({"type": "gap"})


@pytest.fixture
def comings(parts):
    with Proxy("127.0.0.1", parts.redis.port) as redis, Proxy("127.0.0.1", parts.postgres.port) as postgres:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{redis.port}",
                                  database_url=postgres.of(parts.postgres.tcp_url), head_check_ms=NEVER_MS)
        made = Comings(parts, instance, redis, postgres)
        yield made
        made.socket.close()
        assert instance.stop() == 0


@pytest.mark.parametrize("kicked_before", [False, True])
def test_a_return_while_what_was_before_is_read(comings, kicked_before):
    """The join is heard at once, and told in its turn."""
    leave = comings.kick() if kicked_before else None
    comings.postgres.trap("gateway_events", "hold")
    with comings.resumed() as stream:
        wait_until(comings.postgres.holds, what="a page on its way")
        leave = leave or comings.kick()
        join = comings.bring_back()
        comings.heard(join)
        comings.postgres.let_go()
        comings.check(stream, [comings.told, leave, join])


def test_a_return_that_the_instance_hears_of_later(comings):
    """What was read from Postgres is not told again."""
    comings.redis.lose("-events:{")
    leave, join = comings.kick(), comings.bring_back()
    wait_until(lambda: comings.channel.encode() in comings.redis.lost, what="the return lost")
    with comings.resumed() as stream:
        stream.expect({"channel": comings.channel, "seq": join})
        comings.redis.lose(None)
        comings.heard(join)
        comings.check(stream, [comings.told, leave, join])
