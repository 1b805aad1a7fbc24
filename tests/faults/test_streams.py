# SPDX-License-Identifier: Apache-2.0
"""Event streams that continue by Last-Event-ID on another instance."""
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.followers import all_came, heads
from tests.faults.proxy import Proxy
from tests.support.cuts import Cuts
from tests.support.reading import is_event, whole_log
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
    """Cuts occur while the stream is still catching up after the last one."""
    since = heads(load)
    chance = random.Random(4)
    for _ in range(60):
        chance.choice(followers).cut()
        load.wait_acked(chance.randrange(1, 12))
    all_came(load, followers, since)
    load.settle()
    load.judge()


def test_what_was_untold_when_its_instance_died(parts, load, followers):
    """Committed while Redis was stopped; the stream is cut before any instance could receive it."""
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
    """A private channel on an instance behind proxies, with one permanent member and one who leaves and returns, on an event stream."""

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

    def go_past_told(self):
        """Takes an id of a stream that has caught up."""
        self.elsewhere = self.author.ok("channels.create", name="elsewhere")["channel"]["id"]
        self.author.ok("channels.invite", channel=self.elsewhere, users=[self.reader.id])
        with self.resumed() as stream:
            stream.expect({"channel": self.channel, "seq": self.told})
            self.caught_up(stream)

    def caught_up(self, stream):
        """Ends the stream once an id says that all missed was sent."""
        opened = self.last_id
        wait_until(lambda: self.author.post(self.elsewhere) and stream.last_id.count(".") == 4 and stream.last_id != opened,
                   what="the end of the backlog")
        self.last_id = stream.close()

    def check(self, stream, seqs):
        """The stream received exactly these events after the id, in this order, and continues."""
        last = self.post("last")
        stream.expect({"channel": self.channel, "seq": last})
        got = [f["seq"] for f in stream.frames if is_event(f) and f["channel"] == self.channel and f["seq"] >= self.told]
        assert got == [*seqs, last]
        assert not stream.matching({"text": "not for the reader"}) and not stream.matching({"type": "gap"})


@pytest.fixture
def settings():
    return {}


@pytest.fixture
def comings(parts, settings):
    with Proxy("127.0.0.1", parts.redis.port) as redis, Proxy("127.0.0.1", parts.postgres.port) as postgres:
        instance = parts.instance(redis_url=f"redis://127.0.0.1:{redis.port}",
                                  database_url=postgres.of(parts.postgres.tcp_url), tail_check_ms=NEVER_MS, **settings)
        made = Comings(parts, instance, redis, postgres)
        yield made
        made.socket.close()
        assert instance.stop() == 0


@pytest.mark.parametrize("kicked_before", [False, True])
def test_a_return_while_what_was_before_is_read(comings, kicked_before):
    """The join arrives at once, and is sent in its turn."""
    leave = comings.kick() if kicked_before else None
    comings.postgres.trap("gateway_pages", "hold")
    with comings.resumed() as stream:
        wait_until(comings.postgres.holds, what="a page on its way")
        leave = leave or comings.kick()
        join = comings.bring_back()
        comings.heard(join)
        comings.postgres.let_go()
        comings.check(stream, [comings.told, leave, join])


def test_a_return_that_the_instance_hears_of_later(comings):
    """Events read from Postgres are not sent again."""
    comings.redis.lose("-events:{")
    leave, join = comings.kick(), comings.bring_back()
    wait_until(lambda: comings.channel.encode() in comings.redis.lost, what="the return lost")
    with comings.resumed() as stream:
        stream.expect({"channel": comings.channel, "seq": join})
        comings.redis.lose(None)
        comings.heard(join)
        comings.check(stream, [comings.told, leave, join])


def test_what_comes_while_the_channels_are_read(comings):
    """It is not in any snapshot, and was delivered before: others on the instance received it before the stream opened."""
    comings.go_past_told()
    comings.postgres.trap("gateway_resume", "hold")
    with ThreadPoolExecutor() as pool:
        opening = pool.submit(comings.resumed)
        wait_until(comings.postgres.holds, what="the snapshot on its way")
        between = comings.post("between")
        comings.heard(between)
        comings.postgres.let_go()
    with opening.result() as stream:
        comings.check(stream, [between])


@pytest.mark.parametrize("settings", [{"gap_delay_ms": 3000, "gap_timeout_ms": NEVER_MS}])
def test_what_the_instance_has_not_heard_of(comings):
    """An id says that all was sent that was committed before."""
    comings.go_past_told()
    comings.redis.lose(comings.channel)
    untold = comings.post("untold")
    with comings.resumed() as first:
        comings.caught_up(first)
    comings.redis.lose(None)
    with comings.resumed() as second:
        last = comings.post("last")
        second.expect({"channel": comings.channel, "seq": last})
    frames = [frame for frame in first.frames + second.frames if is_event(frame)]
    assert [frame["seq"] for frame in frames if frame["channel"] == comings.channel] == [untold, last]


class Shifting(threading.Thread):
    """During a load: a channel whose messages are edited, deleted and marked, and members who join and leave."""

    def __init__(self, load, channel):
        super().__init__(daemon=True)
        self.author, self.reader = load.people[0][0], load.people[-1][0]
        self.guest = load.people[1][1]
        self.channel = channel
        self.stopping = threading.Event()
        self.error = None
        self.start()

    def run(self):
        while not self.stopping.is_set() and not self.error:
            try:
                self.change()
            except AssertionError as error:
                self.error = error

    def change(self):
        tss = [self.author.post(self.channel, f"{i}") for i in range(3)]
        self.author.ok("chat.update", channel=self.channel, ts=tss[0], text="edited")
        self.guest.ok("channels.leave", channel=self.channel)
        self.author.ok("chat.delete", channel=self.channel, ts=tss[1])
        self.reader.ok("channels.mark", channel=self.channel, ts=tss[2])
        self.guest.ok("channels.join", channel=self.channel)

    def stop(self):
        self.stopping.set()
        self.join()
        if self.error:
            raise self.error


def test_cut_after_any_number_of_events(parts, load):
    """A backlog that no single connection can finish, and one that grows meanwhile."""
    chance = random.Random(5)
    author, reader = load.people[0][0], load.people[-1][0]
    channel = author.ok("channels.create", name="shifting")["channel"]["id"]
    author.ok("channels.invite", channel=channel, users=[reader.id, load.people[1][0].id])
    cuts = Cuts(parts.urls, reader.token, 1)
    since = heads(load)
    shifting = Shifting(load, channel)
    load.wait_acked(150)
    for _ in range(60):
        cuts.count = chance.randrange(2, 40)
        cuts.follow(lambda frame: False, cuts.connections + 1)
    shifting.stop()
    load.stop()
    wanted = {(c, seq) for c in (*load.channels, channel)
              for seq in range(since.get(c, 3) + 1, max(e["seq"] for e in whole_log(reader, c)) + 1)}
    wanted -= {(frame["channel"], frame["seq"]) for frame in cuts.frames if is_event(frame)}

    def take(frame):
        if is_event(frame):
            wanted.discard((frame["channel"], frame["seq"]))
        return not wanted

    assert cuts.follow(take, cuts.connections + 200), f"{len(wanted)} are missing: {sorted(wanted)[:9]}"
    assert not [frame for frame in cuts.frames if frame["type"] == "gap"]
