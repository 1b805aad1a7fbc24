# SPDX-License-Identifier: Apache-2.0
"""Users, devices and two instances in random order, against the model and against SQL.

Every channel switches between the strategies. After every quiet moment: unread counts are exact for every member (channels.info, unread.sync in full
and as a delta, SQL), no cursor moved back except by markUnread, every socket has every event of its
channels once and in order, or a gap, and history equals the model's.
"""
import sys
import traceback
from contextlib import nullcontext

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test

from tests.property.choices import CHANNELS, STRATEGIES, USERS, channels, instances, pick, picks, slots, texts, users
from tests.property.model import Model
from tests.property.stamps import FOREVER, NEVER, between
from tests.property.strategy_rules import StrategyRules, check_counts
from tests.property.thread_rules import ThreadRules
from tests.property.world import World, in_parallel
from tests.support.reading import kind_of, whole_history, whole_log, whole_sidebar


class Unread(StrategyRules, ThreadRules, RuleBasedStateMachine):
    def __init__(self, services):
        super().__init__()
        self.services = services
        self.world = None
        self.model = Model()
        self.ids = []  # channel number → id
        self.devices = {}
        self.cursors_seen = {}  # (user, channel) → (epoch, last_read)
        self.marks_sent = []  # (user, channel, ts, epoch)
        self.tokens = {}  # user → (sync_token, entries by channel)
        self.serial = 0

    # Set-up and the helpers of the rules.

    @initialize(first=st.integers(0, len(STRATEGIES) - 1))
    def begin(self, first):
        self.services.all_up()
        self.world = World(self.services, USERS)
        self.model.users = self.world.ids
        for number in range(CHANNELS):
            self.create_channel(number, STRATEGIES[(first + number) % len(STRATEGIES)])
            self.posts_in_parallel(number, "a start")
        for user in range(USERS):
            self.sync(user, 0)
            self.connect(user, user % 2, native=user < 2)

    def create_channel(self, number, strategy):
        private = number == CHANNELS - 1
        args = {"name": f"room-{number}", "is_private": private, "strategy": strategy}
        made = self.world.ok(0, 0, "channels.create", **args)["channel"]["id"]
        self.ids.append(made)
        self.model.create(0, made, private, strategy)
        for user in range(1, USERS - 1):  # the last user is a guest everywhere
            self.world.ok(0, 0, "channels.invite", channel=made, users=self.world.ids[user])
            self.model.join(user, made)

    def chan(self, number):
        return self.model.channels[self.ids[number]]

    def member(self, number, who):
        return pick(sorted(self.chan(number).members), who)

    def spelled(self, text):
        """The text with its %n and %all as mentions."""
        for user, user_id in enumerate(self.world.ids):
            text = text.replace(f"%{user}", f"<@{user_id}>")
        return text.replace("%all", "<!channel>")

    def new_key(self):
        self.serial += 1
        return f"key-{self.serial}"

    def posted(self, user, number, content, reply, key):
        text, thread_ts, broadcast = content
        self.model.post(user, self.ids[number], text, reply["ts"], reply["seq"], key, thread_ts, broadcast)

    # Posting. `who` chooses among those who can do it.

    @rule(number=channels, who=picks, instance=instances, text=texts)
    def post(self, number, who, instance, text):
        user, key, text = self.member(number, who), self.new_key(), self.spelled(text)
        args = {"channel": self.ids[number], "text": text, "client_msg_id": key}
        reply = self.world.ok(user, instance, "chat.postMessage", **args)
        assert not reply.get("is_duplicate"), reply
        self.posted(user, number, (text, "", False), reply, key)

    @rule(slot=slots, number=channels, text=texts)
    def post_by_socket(self, slot, number, text):
        device = self.devices.get(slot)
        if device is None or not device.socket.is_open or device.user not in self.chan(number).members:
            return
        key, text = self.new_key(), self.spelled(text)
        ack = device.post({"channel": self.ids[number], "text": text, "client_msg_id": key})
        assert ack["ok"], ack
        device.acked.add((self.ids[number], ack["seq"]))
        self.posted(device.user, number, (text, "", False), ack, key)

    @rule(number=channels, who=picks, instance=instances, which=picks, text=texts, broadcast=st.booleans())
    def reply(self, number, who, instance, which, text, broadcast):
        roots = [m for m in self.chan(number).standing() if not m.thread_ts]
        if not roots:
            return
        user, root, key = self.member(number, who), pick(roots, which).ts, self.new_key()
        text = self.spelled(text)
        args = {"channel": self.ids[number], "text": text, "thread_ts": root, "reply_broadcast": broadcast}
        reply = self.world.ok(user, instance, "chat.postMessage", client_msg_id=key, **args)
        self.posted(user, number, (text, root, broadcast), reply, key)

    @rule(user=users, number=channels, instance=instances, text=texts)
    def stranger(self, user, number, instance, text):
        """A user who is not a member can neither post nor mark."""
        if user in self.chan(number).members:
            return
        error = "channel_not_found" if self.chan(number).private else "not_in_channel"
        client = self.world.member(user, instance)
        client.fails(error, "chat.postMessage", channel=self.ids[number], text=text)
        client.fails(error, "channels.mark", channel=self.ids[number], ts=FOREVER)
        client.fails(error, "threads.follow", channel=self.ids[number], thread_ts=NEVER)

    @rule(number=channels, text=texts)
    def posts_in_parallel(self, number, text):
        """Every member posts at once, half of them on each instance."""
        members, text = sorted(self.chan(number).members), self.spelled(text)
        keys = [self.new_key() for _ in members]
        calls = [
            self.fresh(user, n, "chat.postMessage", channel=self.ids[number], text=text, client_msg_id=key)
            for n, (user, key) in enumerate(zip(members, keys))
        ]
        replies = in_parallel(calls)
        for reply, user, key in sorted(zip(replies, members, keys), key=lambda one: one[0].get("seq", 0)):
            assert reply["ok"], reply
            self.posted(user, number, (text, "", False), reply, key)

    def fresh(self, user, wanted, method, /, **args):
        """A call with a separate client, for another thread."""

        def call():
            client = self.world.other_thread(user, wanted % 2)
            try:
                return client.call(method, **args)
            finally:
                client.close()

        return call

    @rule(number=channels, who=picks, count=st.integers(2, 6), text=texts)
    def one_key_in_parallel(self, number, who, count, text):
        user, key, text = self.member(number, who), self.new_key(), self.spelled(text)
        args = {"channel": self.ids[number], "text": text, "client_msg_id": key}
        replies = in_parallel([self.fresh(user, n, "chat.postMessage", **args) for n in range(count)])
        assert all(reply["ok"] for reply in replies), replies
        assert len({(reply["ts"], reply["seq"]) for reply in replies}) == 1, replies
        assert sum(not reply.get("is_duplicate") for reply in replies) == 1, replies
        self.posted(user, number, (text, "", False), replies[0], key)

    @precondition(lambda self: self.model.keys)
    @rule(which=picks, instance=instances, same=st.booleans())
    def retry(self, which, instance, same):
        (user, key_text), key = pick(list(self.model.keys.items()), which)
        if user not in self.model.channels[key.channel].members:
            return
        text, thread_ts, broadcast = key.content
        args = {"channel": key.channel, "text": text if same else text + " else", "client_msg_id": key_text}
        if thread_ts:
            args.update(thread_ts=thread_ts, reply_broadcast=broadcast)
        client = self.world.member(user, instance)
        if not same:
            client.fails("idempotency_key_reused", "chat.postMessage", **args)
            return
        reply = client.ok("chat.postMessage", **args)
        assert (reply["ts"], reply["seq"], reply["is_duplicate"]) == (key.ts, key.seq, True), reply
        self.check_duplicate(self.model.channels[key.channel].messages[key.ts], reply["message"])

    def check_duplicate(self, stored, shown):
        """The message of a duplicate's reply is the message as it now is."""
        if stored.deleted:
            assert shown["subtype"] == "tombstone" and not shown.get("text"), shown
        else:
            assert shown["text"] == stored.text, shown

    # Changing.

    @rule(number=channels, who=picks, instance=instances, which=picks, text=texts)
    def edit(self, number, who, instance, which, text):
        user = self.member(number, who)
        own = self.model.own_messages(user, self.ids[number])
        if own:
            ts, text = pick(own, which).ts, self.spelled(text)
            reply = self.world.ok(user, instance, "chat.update", channel=self.ids[number], ts=ts, text=text)
            self.model.edit(user, self.ids[number], ts, text, reply["seq"])

    @rule(number=channels, who=picks, which=picks, text=texts)
    def edit_beside_marks(self, number, who, which, text):
        """An edit that may come before or after each member's mark of the edited message: the outcome is the same."""
        chan, user, text = self.chan(number), self.member(number, who), self.spelled(text)
        own = self.model.own_messages(user, chan.id)
        if not own:
            return
        ts, members = pick(own, which).ts, sorted(chan.members)
        calls = [self.fresh(m, n, "channels.mark", channel=chan.id, ts=ts) for n, m in enumerate(members)]
        replies = in_parallel(calls + [self.fresh(user, who, "chat.update", channel=chan.id, ts=ts, text=text)])
        assert all(reply["ok"] for reply in replies), replies
        self.model.edit(user, chan.id, ts, text, replies[-1]["seq"])
        for member in members:
            self.send_mark(member, chan.id, 0, ts, None)

    @rule(number=channels, who=picks, instance=instances, which=picks)
    def delete(self, number, who, instance, which):
        user = self.member(number, who)
        own = self.model.own_messages(user, self.ids[number])
        if own:
            ts = pick(own, which).ts
            reply = self.world.ok(user, instance, "chat.delete", channel=self.ids[number], ts=ts)
            self.model.delete(user, self.ids[number], ts, reply["seq"])

    @rule(number=channels, who=picks, instance=instances, which=picks, name=st.sampled_from(["tada", "+1"]))
    def react(self, number, who, instance, which, name):
        """Reacts, or takes it back."""
        user, standing = self.member(number, who), self.chan(number).standing()
        if standing:
            message = pick(standing, which)
            method = "reactions.remove" if user in message.reactions.get(name, []) else "reactions.add"
            reply = self.world.ok(user, instance, method, channel=self.ids[number], timestamp=message.ts, name=name)
            self.model.react(user, self.ids[number], message.ts, name, reply["seq"])

    # Reading.

    @rule(number=channels, who=picks, instance=instances, which=picks, with_epoch=st.booleans(),
          how=st.sampled_from(["exact", "between", "past"]))
    def mark(self, number, who, instance, which, with_epoch, how):
        chan, user = self.chan(number), self.member(number, who)
        ts = pick(list(chan.messages), which)
        ts = {"exact": ts, "between": between(ts), "past": FOREVER}[how]
        self.send_mark(user, chan.id, instance, ts, chan.members[user].epoch if with_epoch else None)

    def send_mark(self, user, channel, instance, ts, epoch):
        args = {} if epoch is None else {"read_epoch": epoch}
        reply = self.world.ok(user, instance, "channels.mark", channel=channel, ts=ts, **args)
        self.model.mark(user, channel, ts, epoch)
        self.marks_sent.append((user, channel, ts, epoch))
        before = self.cursors_seen.get((user, channel))
        self.check_read_state(user, channel, reply)
        if self.cursors_seen[user, channel] != before:
            self.tell_devices(user, channel)

    @rule(number=channels, who=picks, wanted=st.lists(picks, min_size=2, max_size=5))
    def marks_in_parallel(self, number, who, wanted):
        """The devices of one user on both instances, in any order: the highest mark holds."""
        chan, user = self.chan(number), self.member(number, who)
        stamps = [pick(list(chan.messages), which) for which in wanted]
        replies = in_parallel([
            self.fresh(user, n, "channels.mark", channel=chan.id, ts=ts) for n, ts in enumerate(stamps)
        ])
        assert all(r["ok"] and r["last_read"] >= ts for r, ts in zip(replies, stamps)), (replies, stamps)
        before = self.cursors_seen[user, chan.id]
        for ts in stamps:
            self.model.mark(user, chan.id, ts)
        self.check_read_state(user, chan.id, max(replies, key=lambda reply: reply["last_read"]))
        if self.cursors_seen[user, chan.id] != before:
            self.tell_devices(user, chan.id)

    @rule(number=channels, instance=instances)
    def all_read_on(self, number, instance):
        """Every member reads up to the newest message."""
        chan = self.chan(number)
        for user in sorted(chan.members):
            self.send_mark(user, chan.id, instance, chan.last_ts, None)

    @precondition(lambda self: self.marks_sent)
    @rule(which=picks, instance=instances)
    def replay_a_mark(self, which, instance):
        """A retry that arrives late: of this epoch or of an earlier one."""
        user, channel, ts, epoch = pick(self.marks_sent, which)
        if user in self.model.channels[channel].members and ts != FOREVER:
            self.send_mark(user, channel, instance, ts, epoch)

    @rule(number=channels, who=picks, instance=instances, which=picks, exact=st.booleans(), late=st.booleans())
    def mark_unread(self, number, who, instance, which, exact, late):
        """And, if `late`, a mark that another device sent earlier."""
        chan, user = self.chan(number), self.member(number, who)
        ts = pick(list(chan.messages), which)
        ts = ts if exact else between(ts)
        reply = self.world.ok(user, instance, "channels.markUnread", channel=chan.id, ts=ts)
        before = chan.members[user].epoch
        self.model.mark_unread(user, chan.id, ts)
        self.check_read_state(user, chan.id, reply)
        self.tell_devices(user, chan.id)
        if late:
            self.send_mark(user, chan.id, 1 - instance, FOREVER, before)

    @rule(number=channels, who=picks, instance=instances, muted=st.booleans())
    def mute(self, number, who, instance, muted):
        chan, user = self.chan(number), self.member(number, who)
        reply = self.world.ok(user, instance, "channels.setNotifications", channel=chan.id, muted=muted)
        assert reply["muted"] is muted, reply
        if chan.members[user].muted != muted:
            for device in self.devices.values():
                if device.user == user and device.native:
                    device.muted[chan.id] = muted
        chan.members[user].muted = muted

    def tell_devices(self, user, channel):
        """A cursor has moved: every device of the user must receive it."""
        for device in self.devices.values():
            if device.user == user:
                device.marked[channel] = self.cursors_seen[user, channel]

    # Coming and going.

    @rule(user=users, who=picks, number=channels, instance=instances, by_invitation=st.booleans())
    def come(self, user, who, number, instance, by_invitation):
        chan = self.chan(number)
        if by_invitation and user not in chan.members:
            host = self.member(number, who)
            self.world.ok(host, instance, "channels.invite", channel=chan.id, users=self.world.ids[user])
        elif chan.private and user not in chan.members:
            self.world.member(user, instance).fails("channel_not_found", "channels.join", channel=chan.id)
            return
        else:
            self.world.ok(user, instance, "channels.join", channel=chan.id)
        self.joined(user, chan.id, instance)

    def joined(self, user, channel, instance):
        """The server chooses the epoch of a second membership, but not lower than before."""
        if not self.model.join(user, channel):
            return
        seen, _ = self.cursors_seen.pop((user, channel), (0, NEVER))
        epoch = self.world.ok(user, instance, "channels.info", channel=channel)["channel"]["read_epoch"]
        assert epoch >= seen, f"read_epoch {epoch} after a re-join, {seen} before"
        self.model.channels[channel].members[user].epoch = epoch

    @rule(user=users, number=channels, instance=instances)
    def go(self, user, number, instance):
        """Leaves by themselves, or is kicked by the channel's creator, who stays."""
        chan = self.chan(number)
        if user == 0 or user not in chan.members:
            return
        if instance and 0 in chan.members:
            self.world.ok(0, instance, "channels.kick", channel=chan.id, user=self.world.ids[user])
        else:
            self.world.ok(user, instance, "channels.leave", channel=chan.id)
        self.left(user, chan.id)

    def left(self, user, channel):
        self.model.leave(user, channel)
        for device in self.devices.values():
            if device.user == user:
                device.marked.pop(channel, None)
                device.muted.pop(channel, None)

    # Devices.

    @rule(slot=slots, instance=instances, native=st.booleans())
    def connect(self, slot, instance, native):
        """Replaces the device's connection."""
        if slot in self.devices:
            self.disconnect(slot)
        since = {channel.id: channel.head for channel in self.model.channels.values()}
        self.devices[slot] = self.world.connect(slot % USERS, instance, native, since)

    def disconnect(self, slot):
        device = self.devices.pop(slot)
        self.check_order(device)
        device.socket.close()

    # Faults.

    @rule(instance=instances, kind=st.sampled_from(["kill", "SIGTERM", "FLUSHALL", "Redis"]))
    def fault(self, instance, kind):
        """An instance or Redis dies, or restarts if it is dead. One instance always runs."""
        self.world.trace.note(f"fault {kind}, instance {instance}")
        if kind == "FLUSHALL":
            self.services.flush_redis()
        elif kind == "Redis" and self.services.redis_alive:
            self.services.kill_redis()
        elif kind == "Redis":
            self.services.start_redis()
        elif all(self.services.alive):
            self.stop_instance(instance, gently=kind == "SIGTERM")
        else:
            self.services.start_instances()

    def stop_instance(self, instance, gently):
        """Its devices connect to the other one."""
        self.services.stop_instance(instance, gently)
        for slot, device in list(self.devices.items()):
            if device.instance == instance:
                device.socket.wait_closed()
                self.connect(slot, 1 - instance, device.native)

    # Checks.

    @invariant()
    def counts_are_exact_at_once(self):
        """channels.info is exact for all that was committed before the call, whatever is down."""
        for channel in self.model.channels.values():
            for user in channel.members:
                reply = self.world.ok(user, user % 2, "channels.info", channel=channel.id)
                self.check_read_state(user, channel.id, reply["channel"], name="id")

    @rule(user=users, instance=instances, page=st.sampled_from([None, 1, 2]))
    def sync(self, user, instance, page=None):
        """A full sync, and the delta since the last token, applied to the earlier state."""

        def same():
            full = whole_sidebar(self.world.member(user, instance), page=page)
            assert full["full"] and full["removed"] == [], full
            self.check_sidebar(user, full)
            entries = {entry["id"]: entry for entry in full["channels"]}
            if user in self.tokens:
                token, known = self.tokens[user]
                delta = whole_sidebar(self.world.member(user, instance), token, page)
                assert merged(known, delta) == entries, (known, delta, full)
            self.tokens[user] = (full["sync_token"], entries)

        self.world.eventually(same, f"the sync of user {user}")

    @rule()
    def quiet_moment(self):
        """Sockets may have to wait for Redis; counts may not, and are looked at in sync() also while it is dead."""
        self.services.start_redis()
        for user in range(USERS):
            self.sync(user, user % 2)
            self.check_threads(user, user % 2)
        for device in self.devices.values():
            self.world.eventually(lambda d=device: self.check_device(d), f"what user {device.user} was sent")
        for channel in self.model.channels.values():
            self.check_channel(channel)
        self.check_sql()

    def teardown(self):
        if self.world is None:
            return
        failed = True
        try:
            if sys.exc_info()[0] is None:  # else a step has failed, and that is to be seen
                self.services.all_up()
                self.counts_are_exact_at_once()
                self.quiet_moment()
                failed = False
        finally:
            if failed:
                # Hypothesis may report no more than that a second run went otherwise.
                print(f"The last calls:\n{self.world.trace.text()}\n{traceback.format_exc()}")
            for device in self.devices.values():
                device.socket.close()
            self.world.close()

    def check_read_state(self, user, channel, shown, name="channel"):
        """The read state of one member, compared with the model and with earlier states of this cursor."""
        unread = self.model.unread_messages(user, channel)
        cursor = self.model.channels[channel].members[user]
        assert shown[name] == channel
        check_counts(self.model.channels[channel], shown, len(unread))
        assert shown["mention_count"] == self.model.mentions(user, channel), (user, shown, unread)
        assert shown["is_muted"] == cursor.muted, (user, shown)
        assert shown["read_epoch"] == cursor.epoch, (shown, cursor)
        if unread and "oldest_unread_ts" in shown:
            assert shown["oldest_unread_ts"] == unread[0].ts, shown
        now = (shown["read_epoch"], shown["last_read"])
        before = self.cursors_seen.get((user, channel), now)
        assert now >= before, f"the cursor of user {user} in {channel} went back from {before} to {now}"
        self.cursors_seen[user, channel] = now

    def check_sidebar(self, user, full):
        entries = full["channels"]
        assert sorted(entry["id"] for entry in entries) == sorted(self.model.channels_of(user)), entries
        for entry in entries:
            channel = self.model.channels[entry["id"]]
            self.check_read_state(user, channel.id, entry, name="id")
            assert entry["seq"] == channel.head, (entry, channel.head)
            if channel.latest():
                assert entry["latest"] == channel.latest(), (entry, channel.latest())
        order = [(e["is_muted"] or not e["has_unreads"], -micros(self.model.channels[e["id"]].updated)) for e in entries]
        assert order == sorted(order), entries
        loud = [entry.get("unread_count", 0) for entry in entries if not entry["is_muted"]]
        muted = [entry.get("unread_count", 0) for entry in entries if entry["is_muted"]]
        unread = [entry for entry in entries if entry["has_unreads"] and not entry["is_muted"]]
        totals = {"unread_channels": len(unread), "unread_count": sum(loud), "muted_unread_count": sum(muted),
                  "mention_count": sum(entry["mention_count"] for entry in entries)}
        assert totals.items() <= full["totals"].items(), full["totals"]
        assert full["totals"]["badge"] == self.model.badge(user), full

    def check_device(self, device):
        self.check_order(device)
        if not device.socket.is_open:
            code, _ = device.socket.wait_closed()
            assert code == 1012, f"closed with {code}"
            return
        for channel in self.model.channels.values():
            required, _ = self.model.deliveries(device.user, channel.id, device.since[channel.id])
            got = {seq for seq, _, _ in device.events(channel.id)} | device.gaps(channel.id)
            got |= {seq for acked_in, seq in device.acked if acked_in == channel.id}
            assert required <= got, f"{channel.id}: {sorted(required - got)} never came"
            self.check_marked(device, channel.id)
            self.check_muted(device, channel.id)

    def check_order(self, device):
        """The frames so far: each seq once, rising, with the content of its event, and none of other users'."""
        for channel in self.model.channels.values():
            events = device.events(channel.id)
            seqs = [seq for seq, _, _ in events]
            assert seqs == sorted(set(seqs)), f"{channel.id}: {seqs}"
            _, allowed = self.model.deliveries(device.user, channel.id, device.since[channel.id])
            allowed -= {seq for acked_in, seq in device.acked if acked_in == channel.id}
            assert set(seqs) <= allowed, f"{channel.id}: {sorted(set(seqs) - allowed)} is not for user {device.user}"
            for seq, kind, ts in events:
                event = channel.events[seq - 1]
                assert kind == event.kind, (seq, kind, event)
                assert kind != "message" or ts == event.ts, (seq, ts, event)

    def check_marked(self, device, channel):
        """This device received the last mark that moved the cursor."""
        expected = device.marked.get(channel)
        if expected is None:
            return
        types = ("channel_marked", "group_marked")
        frames = device.socket.matching(lambda frame: frame.get("type") in types and frame["channel"] == channel)
        told = [(frame["read_epoch"], frame["last_read"]) for frame in frames]
        assert expected in told and max(told) == expected, (expected, told)

    def check_muted(self, device, channel):
        """The last frame on the device has the final state."""
        if channel in device.muted:
            told = [frame["is_muted"] for frame in device.socket.matching({"type": "unread_changed", "channel": channel})]
            assert told and told[-1] == device.muted[channel], (device.muted[channel], told)

    def check_channel(self, channel):
        user = min(channel.members)
        member = self.world.member(user, user % 2)
        shown = whole_history(member, channel.id, page=7)
        expected = channel.history()
        assert [(m["ts"], m["seq"], m["text"]) for m in shown] == [(m.ts, m.seq, m.text) for m in expected]
        assert [m["user"] for m in shown] == [self.world.ids[m.user] for m in expected]
        assert [reactions_of(m) for m in shown] == [self.reactions_for(user, m) for m in expected]
        events = whole_log(member, channel.id, page=5)
        told = [(f["seq"], kind_of(f)) for f in events]
        assert told == [(e.seq, e.kind) for e in channel.events], (told, channel.events)
        info = member.ok("channels.info", channel=channel.id)["channel"]
        assert info["num_members"] == len(channel.members), info
        for root in {m.thread_ts for m in channel.standing() if m.thread_ts} & {m.ts for m in channel.standing()}:
            thread = member.ok("channels.replies", channel=channel.id, ts=root)["messages"]
            assert [m["ts"] for m in thread] == [root] + [m.ts for m in channel.replies(root)], thread

    def reactions_for(self, user, message):
        """As a user sees them: their own stands first."""
        return {name: [self.world.ids[u] for u in sorted(users, key=lambda u: u != user)] for name, users in message.reactions.items()}

    def check_sql(self):
        counted = self.services.sql_unread([channel.id for channel in self.model.channels.values()])
        expected = {
            (self.world.ids[user], channel.id): self.model.unread(user, channel.id)
            for channel in self.model.channels.values()
            for user in channel.members
        }
        assert counted == expected


def reactions_of(message):
    assert all(reaction["count"] == len(reaction["users"]) for reaction in message.get("reactions", [])), message
    return {reaction["name"]: reaction["users"] for reaction in message.get("reactions", [])}


def micros(ts):
    return int(ts.replace(".", ""))


def merged(known, delta):
    """The entries that a client has after it applied a reply of unread.sync."""
    entries = {} if delta["full"] else {i: e for i, e in known.items() if i not in delta["removed"]}
    entries.update((entry["id"], entry) for entry in delta["channels"])
    return entries


@pytest.mark.parametrize("search", [1, 2])
def test_unread_is_exact(services, profile, search):
    """Two searches in parallel, each with its own seed; during the second, a snapshot is held, so that channels are hot."""
    with services.environment.held_snapshot() if search == 2 else nullcontext():
        run_state_machine_as_test(lambda: Unread(services), settings=profile)
