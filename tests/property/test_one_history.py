# SPDX-License-Identifier: Apache-2.0
"""One history in channels of every strategy, and in one that switches between them: after each step all of them agree with each other and
with the model, as far as each strategy allows."""
import random

import pytest

from tests.property.choices import STRATEGIES
from tests.property.model import Model
from tests.property.strategy_rules import check_counts
from tests.property.world import World

USERS, STEPS = 3, 60
MOVING = "moving"
SEEDS = (1, 2, 3, random.SystemRandom().randrange(10**6))
STEP_WEIGHTS = {"post": 8, "delete": 2, "mark": 4, "mark_unread": 2, "mark_messages": 2, "leave": 1, "move": 2, "flush": 1, "edit": 2, "react": 3, "pin": 1}


class History:
    """Makes each step in every channel. Messages are known by their place: the n-th of each channel is the same one."""

    def __init__(self, services, seed):
        services.all_up()
        self.services, self.random = services, random.Random(seed)
        self.world, self.model = World(services, USERS), Model()
        self.model.users = self.world.ids
        self.rooms = {name: self.make(name) for name in (*STRATEGIES, MOVING)}  # name → id
        self.posts = {name: [] for name in self.rooms}  # name → ts of each message
        self.did = []

    def make(self, name):
        strategy = "sequence" if name == MOVING else name
        room = self.ok(0, "channels.create", name=f"one-{name}", strategy=strategy)["channel"]["id"]
        self.model.create(0, room, False, strategy)
        for user in range(1, USERS):
            self.join(user, room)
        return room

    def ok(self, user, method, /, **args):
        return self.world.ok(user, self.random.randrange(2), method, **args)

    def join(self, user, room):
        self.ok(user, "channels.join", channel=room)
        self.model.join(user, room)
        self.model.channels[room].members[user].epoch = self.ok(user, "channels.info", channel=room)["channel"]["read_epoch"]

    def channel(self, name):
        return self.model.channels[self.rooms[name]]

    def step(self):
        kind = self.random.choices(list(STEP_WEIGHTS), STEP_WEIGHTS.values())[0]
        user = self.random.choice(sorted(self.channel("sequence").members))
        places = self.random.sample(range(len(self.posts["zset"])), min(2, len(self.posts["zset"])))
        self.did.append((kind, user, places))
        if places or kind in ("post", "move", "flush", "leave"):
            getattr(self, kind)(user, places)

    def post(self, user, _):
        text = self.random.choice(["x", f"<@{self.world.ids[self.random.randrange(USERS)]}>", "<!channel>"])
        for name, room in self.rooms.items():
            reply = self.ok(user, "chat.postMessage", channel=room, text=text)
            self.model.post(user, room, text, reply["ts"], reply["seq"])
            self.posts[name].append(reply["ts"])

    def delete(self, _, places):
        for name, room in self.rooms.items():
            message = self.channel(name).messages[self.posts[name][places[0]]]
            if not message.deleted and message.user in self.channel(name).members:
                reply = self.ok(message.user, "chat.delete", channel=room, ts=message.ts)
                self.model.delete(message.user, room, message.ts, reply["seq"])

    def edit(self, _, places):
        for name, room in self.rooms.items():
            message = self.channel(name).messages[self.posts[name][places[0]]]
            if not message.deleted and message.user in self.channel(name).members:
                reply = self.ok(message.user, "chat.update", channel=room, ts=message.ts, text="edited")
                self.model.edit(message.user, room, message.ts, "edited", reply["seq"])

    def react(self, user, places):
        """Reacts, or takes it back."""
        for name, room in self.rooms.items():
            message = self.channel(name).messages[self.posts[name][places[0]]]
            if not message.deleted:
                method = "reactions.remove" if user in message.reactions.get("tada", []) else "reactions.add"
                reply = self.ok(user, method, channel=room, timestamp=message.ts, name="tada")
                self.model.react(user, room, message.ts, "tada", reply["seq"])

    def pin(self, user, places):
        for name, room in self.rooms.items():
            message = self.channel(name).messages[self.posts[name][places[0]]]
            if not message.deleted:
                reply = self.ok(user, "pins.remove" if message.pinned else "pins.add", channel=room, timestamp=message.ts)
                self.model.pin(user, room, message.ts, reply["seq"])

    def mark(self, user, places):
        for name, room in self.rooms.items():
            self.ok(user, "channels.mark", channel=room, ts=self.posts[name][places[0]])
            self.model.mark(user, room, self.posts[name][places[0]])

    def mark_unread(self, user, places):
        for name, room in self.rooms.items():
            self.ok(user, "channels.markUnread", channel=room, ts=self.posts[name][places[0]])
            self.model.mark_unread(user, room, self.posts[name][places[0]])

    def mark_messages(self, user, places):
        """Which a bitmap cannot: there they stay unread. So not while the moving one is at it."""
        if self.channel(MOVING).strategy == "bitmap":
            return
        for name, room in self.rooms.items():
            stamps = [self.posts[name][place] for place in places]
            if name != "bitmap" and not any(self.channel(name).messages[ts].deleted for ts in stamps):
                self.ok(user, "channels.markMessages", channel=room, ts=stamps)
                self.model.mark_messages(user, room, stamps)

    def leave(self, _, __):
        """Leaves and rejoins: everything is read."""
        for room in self.rooms.values():
            self.ok(USERS - 1, "channels.leave", channel=room)
            self.model.leave(USERS - 1, room)
            self.join(USERS - 1, room)

    def move(self, _, __):
        chosen = self.random.choice(STRATEGIES)
        self.ok(0, "channels.setStrategy", channel=self.rooms[MOVING], strategy=chosen)
        self.channel(MOVING).strategy = chosen

    def flush(self, _, __):
        self.services.flush_redis()

    def check(self):
        for user in range(USERS):
            counted = {name: self.model.unread(user, room) for name, room in self.rooms.items() if name != "bitmap"}
            assert len(set(counted.values())) == 1, f"no longer one history: {counted}"
            for name, room in self.rooms.items():
                shown = self.ok(user, "channels.info", channel=room)["channel"]
                unread = self.model.unread_messages(user, room)
                check_counts(self.channel(name), shown, len(unread))
                assert shown["mention_count"] == self.model.mentions(user, room), (name, user, shown)
                if unread and "oldest_unread_ts" in shown:
                    assert shown["oldest_unread_ts"] == unread[0].ts, (name, user, shown)


@pytest.mark.parametrize("seed", SEEDS, ids=[*map(str, SEEDS[:-1]), "random"])
def test_one_history_in_all_strategies(services, seed):
    history = History(services, seed)
    try:
        for _ in range(STEPS):
            history.step()
            history.check()
    except AssertionError:
        print(f"seed {seed}, step {len(history.did)}:", *history.did[-15:], sep="\n")
        raise
    finally:
        history.world.close()
