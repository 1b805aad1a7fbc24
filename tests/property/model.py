# SPDX-License-Identifier: Apache-2.0
"""The required answers of Tidings, in plain Python: no clock, no network, no randomness.

The machine in test_unread.py passes the model every operation that the server acknowledged, with its
`ts` and `seq`; the model checks that these are allowed, and returns the state that every member must
see now. One object is one workspace.
"""
from dataclasses import dataclass, field

from tests.property.stamps import EVERYBODY, NEVER
from tests.property.threads import Threads


class Broken(AssertionError):
    """The server's answer contradicts a guarantee."""


def require(condition, *what):
    if not condition:
        raise Broken(" ".join(str(part) for part in what))


@dataclass
class Message:
    ts: str
    seq: int
    user: str
    text: str
    thread_ts: str = ""
    broadcast: bool = False
    deleted: bool = False
    edited: bool = False
    named: set = field(default_factory=set)  # users, and EVERYBODY
    reactions: dict = field(default_factory=dict)  # name → users, in the order of their reactions
    pinned: bool = False

    @property
    def counts(self):
        """Top-level or broadcast; joins and leaves are events and never become a Message here."""
        return not self.thread_ts or self.broadcast


@dataclass
class Event:
    """One seq of a channel: `kind` is the frame's type or subtype, `ts` that of the message concerned."""

    seq: int
    kind: str
    ts: str = ""
    user: str = ""


@dataclass
class Cursor:
    epoch: int = 0
    ts: str = NEVER
    muted: bool = False
    notify: str = "default"
    closed: bool = False
    singles: set = field(default_factory=set)  # ts of what was read one by one


@dataclass
class Channel:
    id: str
    private: bool
    creator: str
    strategy: str  # in use
    messages: dict = field(default_factory=dict)  # ts → Message, in ts order
    events: list = field(default_factory=list)
    members: dict = field(default_factory=dict)  # user → Cursor
    spells: dict = field(default_factory=dict)  # user → [[joined seq, left seq or None], …]
    updated: str = NEVER  # ts of the last counted post, deleted or not
    direct: bool = False
    archived: bool = False

    def __post_init__(self):
        self.threads = Threads(self)

    @property
    def head(self):
        return len(self.events)

    @property
    def last_ts(self):
        return next(reversed(self.messages), NEVER)

    def standing(self):
        return [m for m in self.messages.values() if not m.deleted]

    def history(self):
        """The messages of channels.history, newest first (joins and leaves left out)."""
        return [m for m in reversed(self.standing()) if m.counts]

    def replies(self, root):
        return [m for m in self.standing() if m.thread_ts == root]

    def latest(self):
        return next((m.ts for m in self.history()), None)

    def previous_ts(self, ts):
        return max((t for t in self.messages if t < ts), default=NEVER)

    def add_event(self, kind, seq=None, ts="", user=""):
        expected = self.head + 1
        require(seq in (None, expected), "seq of", kind, "is", seq, "and not", expected, "in", self.id)
        self.events.append(Event(expected, kind, ts, user))
        return expected


@dataclass
class Key:
    """A used client_msg_id: its post, and the first reply."""

    channel: str
    content: tuple
    ts: str
    seq: int


class Model:
    def __init__(self):
        self.users = []  # number → id
        self.channels = {}
        self.keys = {}  # (user, client_msg_id) → Key

    # Operations that the server said yes to.

    def create(self, user, channel, private, strategy):
        self.channels[channel] = Channel(channel, private, user, strategy)
        self.join(user, channel)

    def join(self, user, channel):
        """Also an invite. For a user who joins or rejoins, everything counts as read."""
        chan = self.channels[channel]
        if user in chan.members:
            return False
        seq = chan.add_event("member_joined_channel", user=user)
        chan.members[user] = Cursor(0, chan.last_ts)
        chan.spells.setdefault(user, []).append([seq, None])
        return True

    def leave(self, user, channel):
        """Also a kick."""
        chan = self.channels[channel]
        seq = chan.add_event("member_left_channel", user=user)
        chan.spells[user][-1][1] = seq
        del chan.members[user]
        chan.threads.left(user)

    def post(self, user, channel, text, ts, seq, key=None, thread_ts="", broadcast=False):
        chan = self.channels[channel]
        require(user in chan.members, user, "posted to", channel, "as no member")
        require(ts > chan.last_ts, "ts", ts, "of a new message is not after", chan.last_ts)
        chan.add_event("message", seq, ts, user)
        message = Message(ts, seq, user, text, thread_ts, broadcast, named=self.named(text, user, chan))
        chan.messages[ts] = message
        if message.counts:
            chan.updated = ts
            for cursor in chan.members.values():
                cursor.closed = False
        if thread_ts:
            chan.threads.replied(message)
        if key is not None:
            self.keys[user, key] = Key(channel, (text, thread_ts, broadcast), ts, seq)

    def edit(self, user, channel, ts, text, seq):
        chan = self.channels[channel]
        message = chan.messages[ts]
        before, message.named = message.named, self.named(text, user, chan, message.named)
        if message.thread_ts:
            chan.threads.named(message, message.named - before)
        message.text = text
        message.edited = True
        chan.add_event("message_changed", seq, ts, user)

    def delete(self, user, channel, ts, seq):
        chan = self.channels[channel]
        message = chan.messages[ts]
        message.deleted, message.pinned = True, False
        message.reactions.clear()
        chan.add_event("message_deleted", seq, ts, user)

    def react(self, user, channel, ts, name, seq):
        """Reacts, or takes it back. Nobody's count changes."""
        chan = self.channels[channel]
        reactions = chan.messages[ts].reactions
        users = reactions.setdefault(name, [])
        chan.add_event("reaction_removed" if user in users else "reaction_added", seq, ts, user)
        (users.remove if user in users else users.append)(user)
        if not users:
            del reactions[name]

    def pin(self, user, channel, ts, seq):
        """Pins, or removes the pin."""
        chan = self.channels[channel]
        message = chan.messages[ts]
        chan.add_event("pin_removed" if message.pinned else "pin_added", seq, ts, user)
        message.pinned = not message.pinned

    def mark(self, user, channel, ts, epoch=None):
        """Marks up to the last message at or before `ts`; no effect with an epoch from before a markUnread."""
        chan = self.channels[channel]
        cursor = chan.members[user]
        if epoch is None or epoch >= cursor.epoch:
            cursor.ts = max(cursor.ts, min(ts, chan.last_ts))

    def mark_unread(self, user, channel, ts):
        cursor = self.channels[channel].members[user]
        cursor.epoch += 1
        cursor.ts = self.channels[channel].previous_ts(ts)
        cursor.singles.clear()

    def mark_messages(self, user, channel, stamps):
        """Marks them one by one; returns whether any of them was unread."""
        fresh = {m.ts for m in self.unread_messages(user, channel)} & set(stamps)
        self.channels[channel].members[user].singles |= fresh
        return bool(fresh)

    def named(self, text, author, chan, before=()):
        """Whom a message mentions: members of now, and those whom it mentioned before."""
        found = {user for user, user_id in enumerate(self.users) if f"<@{user_id}>" in text and user != author}
        return {u for u in found if u in chan.members or u in before} | ({EVERYBODY} if "<!channel>" in text else set())

    # What must be seen.

    def unread(self, user, channel):
        return len(self.unread_messages(user, channel))

    def mentions(self, user, channel):
        return sum(bool(m.named & {user, EVERYBODY}) for m in self.unread_messages(user, channel))

    def badge(self, user):
        """The number of unread messages that are for the user, each once: direct messages, and mentions in their channels and followed
        threads."""
        found = set()
        for chan in (self.channels[channel] for channel in self.channels_of(user) if not self.channels[channel].archived):
            all_are = chan.direct and not chan.members[user].muted
            replies = [m for root in chan.threads.followed(user) for m in chan.threads.unread(user, root) if m.named & {user, EVERYBODY}]
            unread = [m for m in self.unread_messages(user, chan.id) if (all_are or m.named & {user, EVERYBODY}) and not chan.members[user].closed]
            found |= {(chan.id, m.ts) for m in replies + unread}
        return len(found)

    def unread_messages(self, user, channel):
        chan = self.channels[channel]
        cursor = chan.members[user]
        return [m for m in chan.standing()
                if m.counts and m.user != user and m.ts > cursor.ts and m.ts not in cursor.singles]

    def channels_of(self, user):
        return [c.id for c in self.channels.values() if user in c.members]

    def own_messages(self, user, channel):
        """The live messages of a user in a channel, oldest first."""
        return [m for m in self.channels[channel].standing() if m.user == user]

    def deliveries(self, user, channel, after):
        """(required, allowed) seqs for a socket of `user` that was connected when the channel's head was `after`. The user's own leave is
        optional; frames in transit when the socket connected may still arrive."""
        required, allowed = set(), set()
        head = self.channels[channel].head
        for joined, left in self.channels[channel].spells.get(user, []):
            first, last = joined, left or head
            allowed.update(range(first, last + 1))
            required.update(range(max(first, after + 1), last if left else last + 1))
        return required, allowed
