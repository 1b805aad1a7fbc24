# SPDX-License-Identifier: Apache-2.0
"""500 users react to one message at once, on two instances: nothing is lost, nobody else notices."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.support.catch_up import CatchUp

USERS, NAMES = 500, ("tada", "+1", "eyes")
PAUSE_MAX_S = 2  # of posts elsewhere, on a machine that others use, too


class Neighbour(threading.Thread):
    """Posts in another channel until it is stopped, and keeps the longest time that a post took."""

    def __init__(self, workspace):
        super().__init__()
        self.user = workspace.user()
        self.channel = workspace.channel(self.user)
        self.longest_s, self.posts, self.over = 0, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            began = time.monotonic()
            self.user.post(self.channel)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.posts += 1


def react(environment, users, channel, ts, method):
    """All at once: the seq of each one's reaction."""
    def one(number):
        user = users[number].at(environment.urls[number % 2])
        return user.ok(method, channel=channel, timestamp=ts, name=NAMES[number % len(NAMES)])["seq"]
    with ThreadPoolExecutor(40) as pool:
        return list(pool.map(one, range(len(users))))


def replayed(events):
    """Users and counts by name, by what the events say."""
    users, counts = {name: set() for name in NAMES}, {}
    for event in events:
        if event["type"] in ("reaction_added", "reaction_removed"):
            name = event["reaction"]
            (users[name].add if event["type"] == "reaction_added" else users[name].discard)(event["user"])
            counts[name] = event["count"]
            assert len(users[name]) == counts[name], event
    return users, {name: count for name, count in counts.items() if count}


def check(reader, channel, ts, events):
    """What a fresh read shows is what the events lead to."""
    users, counts = replayed(events)
    message = next(m for m in reader.ok("channels.history", channel=channel)["messages"] if m["ts"] == ts)
    assert {r["name"]: r["count"] for r in message.get("reactions", [])} == counts
    for reaction in message.get("reactions", []):
        shown = reaction["users"]
        assert len(shown) == len(set(shown)) == min(50, reaction["count"]) and users[reaction["name"]].issuperset(shown)
    return sum(counts.values())


def test_snapshot_and_replay_agree_and_nothing_cools(environment, workspace, sockets):
    users = workspace.users(USERS)
    ann, channel = users[0], workspace.channel(*users)
    neighbour = Neighbour(workspace)
    with environment.held_snapshot(), environment.database() as database:
        ts = [ann.post(channel, f"{number}") for number in range(3)][0]
        later, socket = CatchUp(ann), sockets(ann, native=True)
        before = users[1].unread(channel)

        def is_hot():
            return database.execute("SELECT is_hot FROM channels WHERE id = %s", [channel]).fetchone()[0]
        assert is_hot()
        neighbour.start()
        seqs = react(environment, users, channel, ts, "reactions.add")
        assert is_hot()
        leavers = users[:USERS // 2]
        seqs += react(environment, leavers, channel, ts, "reactions.remove")
        neighbour.over.set()
        neighbour.join()
        assert is_hot() and users[1].unread(channel) == before
        last = ann.ok("chat.postMessage", channel=channel, text="after")["seq"]
    assert sorted(seqs) == list(range(min(seqs), last))
    assert neighbour.posts > 10 and neighbour.longest_s < PAUSE_MAX_S, (neighbour.posts, neighbour.longest_s)
    socket.expect({"type": "message", "seq": last})
    frames = [frame for frame in socket.frames if "reaction" in frame]
    assert [frame["seq"] for frame in frames] == sorted(seqs)
    assert [event for event in later.all() if "reaction" in event] == frames
    assert check(ann, channel, ts, frames) == USERS - len(leavers)
