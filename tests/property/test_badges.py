# SPDX-License-Identifier: Apache-2.0
"""Random histories on two instances: after each burst of steps, faults among them, each phone shows the badge and the notifications that the
model says."""
import random
import time
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest

from tests.property.model import Model
from tests.property.screens import Screens
from tests.property.world import World

USERS, ROOMS = 3, 2
SECONDS = {False: 15, True: 300}
STEP_WEIGHTS = {"post": 10, "reply": 4, "edit": 3, "delete": 3, "mark": 5, "mark_unread": 2, "mark_messages": 2, "mark_all": 1, "mark_thread": 2,
                "mute": 2, "leave": 1, "kick": 1, "come": 3, "follow": 1, "archive": 1, "close": 1, "notify": 1, "level": 1, "snooze": 2,
                "end_snooze": 2, "quiet_hours": 1, "speak": 2}


class History:
    def __init__(self, services, seed):
        services.all_up()
        self.services, self.random = services, random.Random(seed)
        self.world, self.model = World(services, USERS), Model()
        self.model.users = self.world.ids
        self.rooms = [self.make_room(number) for number in range(ROOMS)]
        self.direct = self.make_direct()
        self.screens = Screens(self.model, {user: self.world.name(user) for user in range(USERS)},
                               {room: f"badges-{number}" for number, room in enumerate(self.rooms)})
        self.sockets = []
        self.phones = {user: self.world.phone(user) for user in range(USERS)}
        self.did, self.killed = [], False

        services.gateway.answer = self.answer

    def answer(self, request):
        """After a while, in which the badge may change again."""
        time.sleep(0.3 * self.random.random() ** 2)
        return self.services.gateway.serve(request)

    def make_room(self, number):
        room = self.ok(0, "channels.create", name=f"badges-{number}")["channel"]["id"]
        self.model.create(0, room, False, "sequence")
        for user in range(1, USERS):
            self.join(user, room)
        return room

    def make_direct(self):
        room = self.ok(0, "conversations.open", users=self.world.ids[1])["channel"]["id"]
        self.model.create(0, room, True, "sequence")
        self.model.join(1, room)
        self.model.channels[room].direct = True
        return room

    def ok(self, user, method, /, **args):
        return self.world.ok(user, self.random.randrange(2), method, **args)

    def join(self, user, room):
        self.ok(user, "channels.join", channel=room)
        self.model.join(user, room)

    def text(self):
        return self.random.choice(["x", "<!channel>", *(f"<@{user_id}> {self.random.randrange(1000)}" for user_id in self.world.ids)])

    def step(self):
        kind = self.random.choices(list(STEP_WEIGHTS), STEP_WEIGHTS.values())[0]
        chan = self.model.channels[self.random.choice([*self.rooms, self.direct])]
        user = self.random.choice(sorted(chan.members))
        self.did.append((kind, user, chan.id))
        if not chan.archived or kind == "archive":
            getattr(self, kind)(user, chan)
        self.screens.stepped()

    def some(self, messages):
        """One of the last few, or None."""
        return self.random.choice(messages[-6:]) if messages else None

    def post(self, user, chan, **more):
        text = self.text()
        reply = self.ok(user, "chat.postMessage", channel=chan.id, text=text, **more)
        self.model.post(user, chan.id, text, reply["ts"], reply["seq"], None, more.get("thread_ts", ""), more.get("reply_broadcast", False))
        self.screens.posted(reply["ts"])

    def reply(self, user, chan):
        root = self.some([m for m in chan.standing() if not m.thread_ts])
        if root:
            self.post(user, chan, thread_ts=root.ts, reply_broadcast=self.random.random() < 0.3)

    def edit(self, user, chan):
        message, text = self.some(self.model.own_messages(user, chan.id)), self.text()
        if message:
            reply = self.ok(user, "chat.update", channel=chan.id, ts=message.ts, text=text)
            self.model.edit(user, chan.id, message.ts, text, reply["seq"])

    def delete(self, user, chan):
        message = self.some(self.model.own_messages(user, chan.id))
        if message:
            reply = self.ok(user, "chat.delete", channel=chan.id, ts=message.ts)
            self.model.delete(user, chan.id, message.ts, reply["seq"])

    def mark(self, user, chan):
        message = self.some(list(chan.messages.values()))
        if message:
            self.ok(user, "channels.mark", channel=chan.id, ts=message.ts)
            self.model.mark(user, chan.id, message.ts)

    def mark_unread(self, user, chan):
        message = self.some([m for m in chan.standing() if m.counts])
        if message:
            self.ok(user, "channels.markUnread", channel=chan.id, ts=message.ts)
            self.model.mark_unread(user, chan.id, message.ts)

    def mark_messages(self, user, chan):
        message = self.some([m for m in chan.standing() if m.counts])
        if message:
            self.ok(user, "channels.markMessages", channel=chan.id, ts=[message.ts])
            self.model.mark_messages(user, chan.id, [message.ts])

    def mark_all(self, user, _):
        self.ok(user, "channels.markAll")
        for room in self.model.channels_of(user):
            if not self.model.channels[room].archived:
                self.model.mark(user, room, self.model.channels[room].last_ts)

    def mark_thread(self, user, chan):
        reply = self.some([m for m in chan.standing() if m.thread_ts and not chan.messages[m.thread_ts].deleted])
        if reply:
            self.ok(user, "threads.mark", channel=chan.id, thread_ts=reply.thread_ts, ts=reply.ts)
            chan.threads.mark(user, reply.thread_ts, reply.ts)

    def mute(self, user, chan):
        muted = self.random.random() < 0.5
        self.ok(user, "channels.setNotifications", channel=chan.id, muted=muted)
        chan.members[user].muted = muted

    def leave(self, user, chan):
        if user and not chan.direct:
            self.ok(user, "channels.leave", channel=chan.id)
            self.model.leave(user, chan.id)

    def kick(self, user, chan):
        if user and not chan.direct and 0 in chan.members:
            self.ok(0, "channels.kick", channel=chan.id, user=self.world.ids[user])
            self.model.leave(user, chan.id)

    def archive(self, _, chan):
        if not chan.direct:
            self.ok(0, "channels.unarchive" if chan.archived else "channels.archive", channel=chan.id)
            chan.archived = not chan.archived
            chan.add_event("channel_archive" if chan.archived else "channel_unarchive", user=0)

    def close(self, user, chan):
        if chan.direct:
            self.ok(user, "conversations.close", channel=chan.id)
            chan.members[user].closed = True

    def notify(self, user, chan):
        notify = self.random.choice(["default", "default", "all", "mentions", "none"])
        self.ok(user, "channels.setNotifications", channel=chan.id, notify=notify)
        chan.members[user].notify = notify

    def level(self, user, _):
        level = self.random.choice(["all", "mentions", "mentions", "none"])
        self.ok(user, "notifications.set", level=level)
        self.screens.levels[user] = level

    def snooze(self, user, _):
        """Perhaps a longer or a shorter one than before."""
        self.ok(user, "dnd.setSnooze", num_minutes=self.random.randrange(10, 600))
        self.screens.hush(user, self.screens.snoozed, True)

    def end_snooze(self, user, _):
        if user in self.screens.snoozed:
            self.ok(user, "dnd.endSnooze")
            self.screens.hush(user, self.screens.snoozed, False)

    def quiet_hours(self, user, _):
        is_over, now = user in self.screens.hours, datetime.now(timezone.utc)
        hours = [""] * 2 if is_over else [(now + timedelta(hours=hours)).strftime("%H:%M") for hours in (-2, 2)]
        self.ok(user, "notifications.set", dnd_start=hours[0], dnd_end=hours[1], tz="UTC")
        self.screens.hush(user, self.screens.hours, not is_over)

    def speak(self, user, chan):
        """They are active for a second, or until the end of the burst."""
        self.sockets.append(self.world.member(user, self.random.randrange(2)).socket())
        self.sockets[-1].request({"id": 1, "type": "channel_blur", "channel": chan.id})

    def come(self, _, chan):
        for user in set(range(USERS)) - set(chan.members):
            if not chan.direct:
                self.join(user, chan.id)

    def follow(self, user, chan):
        reply = self.some([m for m in chan.standing() if m.thread_ts and not chan.messages[m.thread_ts].deleted])
        if reply and self.random.random() < 0.5:
            self.ok(user, "threads.unfollow", channel=chan.id, thread_ts=reply.thread_ts)
            if user in chan.threads.places.get(reply.thread_ts, {}):
                chan.threads.places[reply.thread_ts][user].following = False

    def fault(self):
        kind = self.random.choice(["kill", "SIGTERM", "FLUSHALL", "Redis"])
        self.did.append(kind)
        if kind == "FLUSHALL":
            self.services.flush_redis()
        elif kind == "Redis":
            self.services.kill_redis()
        else:
            self.killed = self.killed or kind == "kill"
            self.services.stop_instance(self.random.randrange(2), gently=kind == "SIGTERM")

    def burst(self, faults):
        at = self.random.randrange(6)
        for number in range(self.random.randrange(1, 7)):
            if faults and number == at:
                self.fault()
            self.step()
        self.services.all_up()
        self.did.append("quiet")
        for user, phone in self.phones.items():
            self.world.eventually(lambda of=user, on=phone: self.check(of, on), f"the screen of user {user} after {self.did[-20:]}")
        self.screens.burst_ended()
        while self.sockets:
            self.sockets.pop().close()

    def check(self, user, phone):
        assert phone.badge == self.model.badge(user), (self.services.sql_badge(self.world.ids[user]),
                                                       [(push.badge, push.ts, push.body) for push in phone.pushes[-5:]])
        self.screens.check(user, phone.screen)

    def check_once(self, faults):
        """Each message makes one sound; a killed instance may leave another one. Withdrawn is what is shown."""
        for phone in self.phones.values() if not self.killed else ():
            rings = Counter((push.channel, push.ts) for push in phone.rings if push.channel)
            assert not rings or max(rings.values()) == 1, rings.most_common(3)
            assert faults or not phone.replay()[1], phone.replay()[1]

    def end(self):
        self.services.gateway.answer = None
        for phone in self.phones.values():
            phone.member.at(phone.member.url).call("devices.unregister", device_id=phone.device_id)
        self.world.close()


def run(services, seconds, faults):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        seed = random.SystemRandom().randrange(10**6)
        print(f"seed {seed}")
        history = History(services, seed)
        try:
            for _ in range(10):
                history.burst(faults)
            history.check_once(faults)
        finally:
            history.end()


@pytest.mark.parametrize("faults", [False, True])
def test_badges_are_exact(services, faults):
    run(services, SECONDS[False], faults)


@pytest.mark.long
@pytest.mark.parametrize("faults", [False, True])
def test_badges_are_exact_for_long(services, faults):
    run(services, SECONDS[True], faults)
