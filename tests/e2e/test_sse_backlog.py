# SPDX-License-Identifier: Apache-2.0
"""Event streams that break before the backlog is complete: the next connection continues where the last one ended."""

import collections
import concurrent.futures
import os
import signal

import pytest

from tests.support.cuts import Cuts
from tests.support.wait import wait_until


class Missing:
    """The events still missing, and how often each was received."""

    def __init__(self, wanted):
        self.left = set(wanted)
        self.came = collections.Counter()

    def take(self, frame):
        key = (str(frame.get("channel")), frame.get("ts"))
        self.came[key] += 1
        self.left.discard(key)
        return not self.left

    def check(self, cuts, connections_max):
        assert cuts.follow(self.take, connections_max), f"{len(self.left)} missing after {cuts.connections} connections"
        assert not [frame for frame in cuts.frames if frame["type"] == "gap"]


@pytest.mark.parametrize("channels, missed, lasts, connections_max", [
    (8, 40, 20, 21), (1, 320, 20, 21), pytest.param(50, 400, 100, 250, marks=pytest.mark.long)])
def test_each_connection_goes_on(environment, workspace, channels, missed, lasts, connections_max):
    """Each connection lasts for a given number of events; the number of duplicates is at most the number of missed events."""
    ann, bob = workspace.users(2)
    where = [workspace.channel(ann, bob) for _ in range(channels)]
    cuts = Cuts(environment.urls, bob.token, lasts)

    def fill(part):
        author = ann.at(environment.urls[0])
        return [(channel, author.post(channel, f"{i}")) for channel in part for i in range(missed)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        missing = Missing(key for keys in pool.map(fill, [[channel] for channel in where]) for key in keys)
    missing.check(cuts, connections_max)
    assert sum(missing.came[key] for key in missing.came) <= 2 * channels * missed
    for channel in where:
        tss = list(dict.fromkeys(frame["ts"] for frame in cuts.frames if frame.get("channel") == channel and "ts" in frame))
        assert tss == sorted(tss)


def test_what_is_no_event_goes_on_too(environment, workspace):
    """Read states, threads and new channels, more than one connection can send, in addition to posts."""
    ann, bob = workspace.users(2)
    where = [workspace.channel(ann, bob) for _ in range(6)]
    roots = [ann.post(where[0], f"root {i}") for i in range(6)]
    last = {channel: ann.post(channel, "last") for channel in where}
    cuts = Cuts(environment.urls, bob.token, 3)
    for root in roots:
        bob.ok("threads.follow", channel=where[0], thread_ts=root)
    bob.ok("channels.markAll")
    made = [workspace.channel(ann) for _ in range(6)]
    ann.ok("chat.delete", channel=where[1], ts=last[where[1]])
    left = ({("channel_marked", channel) for channel in where} | {("channel_created", channel) for channel in made}
            | {("thread_subscribed", root) for root in roots})

    def take(frame):
        channel = frame.get("channel")
        left.discard((frame["type"], channel["id"] if isinstance(channel, dict) else channel))
        left.discard((frame["type"], frame.get("thread_ts")))
        return not left

    assert cuts.follow(take, 40), left
    assert not [frame for frame in cuts.frames if frame["type"] == "gap"]


def backlog(environment, workspace):
    """A reader who missed 30 posts in each of four channels."""
    ann, bob = workspace.users(2)
    where = [workspace.channel(ann, bob) for _ in range(4)]
    cuts = Cuts(environment.urls, bob.token, 10)
    return ann, bob, where, cuts, Missing((channel, ann.post(channel, f"{i}")) for channel in where for i in range(30))


def test_a_release_that_ignores_the_progress_loses_nothing(environment, workspace):
    """It reads the first four numbers of an id, and resumes from there."""
    _, _, _, cuts, missing = backlog(environment, workspace)
    cuts.follow(missing.take, 5)
    cuts.last_id = ".".join(cuts.last_id.split(".")[:5])
    cuts.count = 200
    missing.check(cuts, 6)


def test_what_happens_in_the_middle_of_a_backlog(environment, workspace):
    """In channels already sent, in those not sent yet, and in a new one."""
    ann, bob, where, cuts, missing = backlog(environment, workspace)
    cuts.follow(missing.take, 6)
    new = workspace.channel(ann)
    for channel in [*where, new]:
        if channel == new:
            ann.ok("channels.invite", channel=new, users=[bob.id])
        missing.left |= {(channel, ann.post(channel, f"late {i}")) for i in range(15)}
    cuts.connections = 0
    missing.check(cuts, 40)


def test_kicked_and_brought_back_in_the_middle_of_a_backlog(environment, workspace):
    """No event from in between is sent, wherever the connection was cut."""
    ann, bob = workspace.users(2)
    secret = workspace.channel(ann, bob, private=True)
    cuts = Cuts(environment.urls, bob.token, 3)
    missing = Missing((secret, ann.post(secret, f"before {i}")) for i in range(7))
    cuts.follow(missing.take, 2)
    for part in range(3):
        ann.ok("channels.kick", channel=secret, user=bob.id)
        hidden = [ann.post(secret, f"hidden {part} {i}") for i in range(7)]
        ann.ok("channels.invite", channel=secret, users=[bob.id])
        missing.left |= {(secret, ann.post(secret, f"back {part} {i}")) for i in range(7)}
        assert hidden
    cuts.connections = 0
    missing.check(cuts, 40)
    assert not [frame for frame in cuts.frames if "hidden" in frame.get("text", "")]


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("value", ["0", "1", "4", "9223372036854775807", "67484848"])
def test_an_id_with_other_numbers(environment, workspace, number, value):
    """A forged id gives no access to events that its reader may not see."""
    ann, bob = workspace.users(2)
    secret, channel = workspace.channel(ann, private=True), workspace.channel(ann, bob)
    ann.post(secret, "secret")
    cuts = Cuts(environment.urls, bob.token, 3)
    ann.ok("channels.invite", channel=secret, users=[bob.id])
    for i in range(4):
        ann.post(secret, "seen")
        ann.post(channel, "seen")
    ann.ok("channels.kick", channel=secret, user=bob.id)
    ann.post(secret, "secret")
    cuts.follow(lambda frame: False, 1)
    numbers = cuts.last_id.split(".")
    numbers[5 + number] = value
    cuts.last_id, cuts.count = ".".join(numbers), 50
    ts = ann.post(channel, "last")
    assert cuts.follow(lambda frame: frame.get("ts") == ts or number in (0, 5), 2)
    assert not [frame for frame in cuts.frames if frame.get("text") == "secret"]


def test_a_mark_while_the_stream_opens(environment, workspace):
    """Between Postgres' answer about the backlog and the subscription to later events."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    instance, elsewhere = environment.instances[0], bob.at(environment.urls[1])
    ts = ann.post(channel)
    last_id = bob.at(instance.url).stream().close()
    with environment.database() as holder, environment.database() as watch, concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_snapshot_xmin(s)%' AND query NOT LIKE '%pg_stat_activity%' AND "
        with holder.transaction():
            holder.execute("LOCK TABLE thread_members IN ACCESS EXCLUSIVE MODE")
            opened = pool.submit(bob.at(instance.url).stream, last_id)
            wait_until(lambda: watch.execute(asked + "wait_event_type = 'Lock'").fetchone()[0], what="the stream to open")
            os.kill(instance.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: not watch.execute(asked + "state = 'active'").fetchone()[0], what="Postgres' answer")
            elsewhere.ok("channels.mark", channel=channel, ts=ts)
        finally:
            os.kill(instance.pid, signal.SIGCONT)
        with opened.result() as stream:
            stream.expect({"type": "channel_marked", "channel": channel, "ts": ts})
