# SPDX-License-Identifier: Apache-2.0
"""The threads of a channel, as the model knows them."""
from dataclasses import dataclass

from tests.property.stamps import EVERYBODY, FOREVER, NEVER, between


@dataclass
class Place:
    """The state of one user in one thread."""

    following: bool = False
    ts: str = NEVER

    def follow(self, ts):
        if not self.following:
            self.following = True
            self.ts = max(self.ts, ts)


class Threads:
    """All threads of one channel."""

    def __init__(self, channel):
        self.channel = channel
        self.places = {}  # root → {user: Place}
        self.begun = set()

    def place(self, root, user):
        return self.places.setdefault(root, {}).setdefault(user, Place())

    def replied(self, reply):
        author = self.channel.messages[reply.thread_ts].user
        if reply.thread_ts not in self.begun and author in self.channel.members:
            if author not in self.places.get(reply.thread_ts, {}):
                self.place(reply.thread_ts, author).follow(NEVER)
        self.begun.add(reply.thread_ts)
        self.place(reply.thread_ts, reply.user).follow(reply.ts)
        self.named(reply, reply.named)

    def named(self, reply, users):
        for user in users - {EVERYBODY}:
            self.place(reply.thread_ts, user).follow(self.last(reply.thread_ts, between(reply.ts)))

    def left(self, user):
        for root, places in self.places.items():
            if user in places and places[user].following:
                if any(m.user == user for m in self.channel.replies(root)):
                    places[user].following = False
                else:
                    del places[user]

    def last(self, root, until=FOREVER):
        """The last reply up to a ts, standing or not."""
        return max((m.ts for m in self.channel.messages.values() if m.thread_ts == root and m.ts <= until), default=NEVER)

    def mark(self, user, root, ts):
        last = self.last(root, ts)
        if last != NEVER:
            place = self.place(root, user)
            place.ts = max(place.ts, last)

    def unread(self, user, root):
        place = self.places.get(root, {}).get(user, Place())
        return [m for m in self.channel.replies(root) if place.following and m.user != user and m.ts > place.ts]

    def state(self, user, root):
        """last_read, unread_count, mention_count, subscribed."""
        place = self.places.get(root, {}).get(user, Place())
        unread = self.unread(user, root)
        return (place.ts, len(unread), sum(bool(m.named & {user, EVERYBODY}) for m in unread), place.following)

    def followed(self, user):
        """Without threads that were deleted with all their replies."""
        return [root for root, places in self.places.items() if user in places and places[user].following
                and (not self.channel.messages[root].deleted or self.channel.replies(root))]

    def rank(self, user, root):
        return not self.unread(user, root), -float(max(root, self.last(root)).replace(".", "")), self.channel.id, root
