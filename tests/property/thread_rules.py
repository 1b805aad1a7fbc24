# SPDX-License-Identifier: Apache-2.0
"""Threads in the machine of test_unread.py: marked, followed, listed."""
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.property.choices import channels, instances, pick, picks
from tests.property.stamps import FOREVER, between
from tests.support.reading import whole_sidebar

STATE = ("last_read", "unread_count", "mention_count", "subscribed")


def shown_state(shown):
    return tuple(shown[name] for name in STATE)


class ThreadRules:
    """Mixed into the machine."""

    def root(self, number, which):
        chan = self.chan(number)
        return pick([m.ts for m in chan.messages.values()
                     if not m.thread_ts and (not m.deleted or chan.replies(m.ts))] or [None], which)

    def thread_call(self, method, number, user, instance, root, **args):
        threads = self.chan(number).threads
        reply = self.world.ok(user, instance, method, channel=self.ids[number], thread_ts=root, **args)
        assert shown_state(reply) == threads.state(user, root), (method, user, root, reply, threads.state(user, root))

    @rule(number=channels, who=picks, instance=instances, which=picks, far=picks,
          how=st.sampled_from(["exact", "between", "past"]))
    def mark_thread(self, number, who, instance, which, far, how):
        root, user = self.root(number, which), self.member(number, who)
        if root:
            ts = pick([m.ts for m in self.chan(number).messages.values() if m.thread_ts == root] or [root], far)
            ts = {"exact": ts, "between": between(ts), "past": FOREVER}[how]
            self.chan(number).threads.mark(user, root, ts)
            self.thread_call("threads.mark", number, user, instance, root, ts=ts)

    @rule(number=channels, who=picks, instance=instances, which=picks, follow=st.booleans())
    def follow_thread(self, number, who, instance, which, follow):
        root, user = self.root(number, which), self.member(number, who)
        if not root:
            return
        place = self.chan(number).threads.place(root, user)
        if follow:
            place.follow(self.chan(number).threads.last(root))
        place.following = follow
        self.thread_call("threads.follow" if follow else "threads.unfollow", number, user, instance, root)

    def check_threads(self, user, instance):
        """threads.list, in pages; what unread.sync sums up; and what replies say of each root."""
        followed = [(chan.threads.rank(user, root), chan, root) for chan in self.model.channels.values()
                    if user in chan.members for root in chan.threads.followed(user)]
        expected = [(chan.id, root, chan.threads.state(user, root)) for _, chan, root in sorted(followed, key=lambda f: f[0])]
        shown, cursor = [], ""
        while True:
            reply = self.world.ok(user, instance, "threads.list", limit=3, cursor=cursor)
            shown += [(t["channel"], t["thread_ts"], shown_state(t)) for t in reply["threads"]]
            cursor = reply["response_metadata"]["next_cursor"]
            if not cursor:
                break
        assert shown == expected, (user, shown, expected)
        totals = {"has_unreads": any(state[1] for _, _, state in expected),
                  "unread_count": sum(state[1] for _, _, state in expected),
                  "mention_count": sum(state[2] for _, _, state in expected)}
        assert reply["totals"] == totals, (user, reply["totals"], totals)
        for token in (None, self.tokens[user][0]):
            summed = whole_sidebar(self.world.member(user, instance), token)["threads"]
            assert summed == totals, (user, token, summed, totals)
        assert self.services.sql_threads(self.world.ids[user]) == totals["unread_count"]
        self.check_roots(user, instance, expected)

    def check_roots(self, user, instance, followed):
        for channel, root, state in followed:
            replies = self.model.channels[channel].replies(root)
            if not replies:
                continue
            shown = self.world.ok(user, instance, "channels.replies", channel=channel, ts=root)["messages"][0]
            assert (shown["last_read"], shown["unread_count"]) == state[:2], (user, shown, state)
            assert (shown["reply_count"], shown["latest_reply"]) == (len(replies), replies[-1].ts), shown
            authors = {self.world.ids[m.user] for m in replies}
            assert shown["reply_users_count"] == len(authors) and set(shown["reply_users"]) == authors, shown
