# SPDX-License-Identifier: Apache-2.0
"""What the phones of a history may and must show."""
import re

from tests.property.stamps import EVERYBODY


class Screens:
    """What users want to hear of, by a model of their channels. A conversation is (channel id, root of a thread or None).

    A message is *certain* to be shown, or a later one in its place, while it has been unread and wanted ever since it was posted: what was
    read, muted … for a moment, or is mentioned by an edit, may be shown."""

    def __init__(self, model, names, rooms):
        self.model, self.names, self.rooms = model, names, rooms  # rooms: id → name
        self.levels = {user: "mentions" for user in names}
        self.snoozed, self.hours = set(), set()  # users in a snooze, in quiet hours
        self.certain = {user: set() for user in names}  # (conversation, ts)
        self.recent = {user: set() for user in names}  # of the present burst
        self.put_off = {user: set() for user in names}  # that were put off to the end of quiet hours, perhaps
        self.hidden = {user: set() for user in names}  # the same, since the last end, for sure
        self.ended = set()  # users whose quiet hours ended in the present burst: what is posted to them may still come in the summary

    def is_quiet(self, user):
        return user in self.snoozed | self.hours

    def wanted(self, user):
        """Conversation → its messages to notify the user of, oldest first."""
        found = {}
        for chan in (self.model.channels[channel] for channel in self.model.channels_of(user)):
            cursor = chan.members[user]
            level = self.levels[user] if cursor.notify == "default" else cursor.notify
            if level == "none" or chan.archived or cursor.closed:
                continue
            hears_all = not cursor.muted and (level == "all" or chan.direct)
            unread = [m for m in self.model.unread_messages(user, chan.id) if hears_all or m.named & {user, EVERYBODY}]
            if unread:
                found[chan.id, None] = unread
            for root in chan.threads.places:
                replies = [m for m in chan.threads.unread(user, root) if self.is_of_thread(user, cursor, hears_all, m)]
                if replies:
                    found[chan.id, root] = replies
        return found

    @staticmethod
    def is_of_thread(user, cursor, hears_all, message):
        """Whether a reply is told as one, and not in its channel."""
        is_named = bool(message.named & {user, EVERYBODY})
        return (not cursor.muted or is_named) and not (message.counts and (message.ts <= cursor.ts or hears_all or is_named))

    def posted(self, ts):
        """After the model has a new message."""
        for user in self.names:
            fresh = {(place, ts) for place, messages in self.wanted(user).items() if messages[-1].ts == ts}
            self.certain[user] |= fresh
            self.recent[user] |= fresh
            if self.is_quiet(user) or user in self.ended:
                self.put_off[user] |= fresh
            if self.is_quiet(user):
                self.hidden[user] |= fresh

    def stepped(self):
        """After any step."""
        for user in self.names:
            self.certain[user] &= {(place, m.ts) for place, messages in self.wanted(user).items() for m in messages}

    def hush(self, user, quiet, on):
        """A snooze or quiet hours (`quiet`: the set of their users) begin or end."""
        (quiet.add if on else quiet.discard)(user)
        if on:
            self.put_off[user] |= self.recent[user]
        elif not self.is_quiet(user):
            self.hidden[user].clear()
            self.ended.add(user)

    def burst_ended(self):
        self.ended.clear()
        for recent in self.recent.values():
            recent.clear()

    def words(self, place, message):
        """Title and body."""
        text = message.text.replace("<!channel>", "@channel")
        text = re.sub("<@(U[A-Z0-9]+)>", lambda found: "@" + self.names[self.model.users.index(found[1])], text)
        author = self.names[message.user]
        return (author, text) if place[0] not in self.rooms else (f"#{self.rooms[place[0]]}", f"{author}: {text}")

    def name(self, user, place):
        """Of a conversation, in a summary."""
        if place[0] in self.rooms:
            return f"#{self.rooms[place[0]]}"
        return next(self.names[other] for other in self.model.channels[place[0]].members if other != user)

    def check(self, user, screen):
        wanted = self.wanted(user)
        summary = screen.pop((None, None), None)
        named = set(summary.body.split(", ")) if summary else set()
        assert named <= {self.name(user, place) for place in wanted}, ("the summary", named, wanted)
        for place, push in screen.items():
            [message] = [m for m in wanted.get(place, []) if m.ts == push.ts] or [None]
            assert message, ("shown, and not wanted", place, push.ts, push.body)
            assert (push.title, push.body) == self.words(place, message)
            assert (place, push.ts) not in self.hidden[user], ("shown during quiet hours", push)
        for place in wanted:
            due = [m.ts for m in wanted[place] if (place, m.ts) in self.certain[user]]
            if self.is_quiet(user):
                due = [ts for ts in due if (place, ts) not in self.put_off[user]]
            is_summed = due and (place, due[-1]) in self.put_off[user] and self.name(user, place) in named
            assert not due or is_summed or (place in screen and screen[place].ts >= due[-1]), ("not shown", place, due[-1], screen.get(place))
