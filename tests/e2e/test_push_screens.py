# SPDX-License-Identifier: Apache-2.0
"""What a phone shows: each notification once with a sound, then in its present words, and gone as soon as its message is read or of no concern."""

import time

import pytest

from tests.support.environment import Environment, running
from tests.support.phones import AndroidPhone, google
from tests.support.wait import wait_until

PAUSE_MS, ACTIVE_S = 300, 4


@pytest.fixture(scope="module")
def fcm(tmp_path_factory):
    receiver, settings = google(tmp_path_factory.mktemp("fcm"))
    yield receiver, settings
    receiver.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder, fcm):
    settings = {**fcm[1], "TIDINGS_PUSH_PAUSE_MS": str(PAUSE_MS), "TIDINGS_PUSH_ACTIVE_S": str(ACTIVE_S)}
    yield from running(Environment(tmp_path_factory.mktemp("screens"), 1, settings=settings, recorder=recorder))


class Pair:
    """Ann, who posts, and Bob with his phone, in a channel and in a direct conversation."""

    def __init__(self, workspace, receiver):
        self.admin = workspace.admin
        self.ann, self.bob, self.cid = workspace.users(3)
        self.channel = workspace.channel(self.ann, self.bob)
        self.direct = self.open(self.ann)
        self.phone = AndroidPhone(workspace, self.bob, receiver)
        self.wait_shown(self.cid.post(self.open(self.cid), "known"))  # the workspace is known to have a device
        self.bob.ok("channels.markAll")
        self.wait_gone()

    def open(self, other):
        return other.ok("conversations.open", users=self.bob.id)["channel"]["id"]

    def mention(self, text="x", **more):
        return self.ann.post(self.channel, f"<@{self.bob.id}> {text}", **more)

    def show(self, how="direct"):
        """A message that the phone shows, and its place."""
        root = self.bob.post(self.channel, "root") if how == "thread" else None
        post = {"direct": lambda: self.ann.post(self.direct, "shown"), "mention": lambda: self.mention("shown"),
                "all": lambda: self.ann.post(self.channel, "<!channel> shown"), "thread": lambda: self.ann.post(self.channel, "shown", thread_ts=root)}
        ts = post[how]()
        self.wait_shown(ts)
        return ts, (self.direct if how == "direct" else self.channel, root)

    def edit(self, place, ts, text):
        self.ann.ok("chat.update", channel=place[0], ts=ts, text=text)

    @property
    def shown(self):
        return {push.ts for push in self.phone.screen.values()}

    def wait_shown(self, *tss):
        wait_until(lambda: self.shown == set(tss), what=f"{tss} shown")

    def wait_gone(self):
        self.wait_shown()

    def wait_words(self, ts, words):
        wait_until(lambda: [push.body for push in self.phone.screen.values() if push.ts == ts] == [words], what=f"the words {words}")

    def settled(self):
        """Whatever else is to be pushed has been by now: a message of another conversation comes after it."""
        ts = self.cid.post(self.open(self.cid), "that is all")
        wait_until(lambda: ts in self.shown, what="all settled")
        time.sleep(PAUSE_MS / 1000 + 0.5)
        self.bob.ok("channels.mark", channel=self.open(self.cid), ts=ts)
        wait_until(lambda: ts not in self.shown, what="all settled")


@pytest.fixture
def pair(workspace, fcm):
    return Pair(workspace, fcm[0])


WITHDRAWN = {
    "read": ("direct", lambda p, ts, at: p.bob.ok("channels.mark", channel=at[0], ts=ts)),
    "read one by one": ("mention", lambda p, ts, at: p.bob.ok("channels.markMessages", channel=at[0], ts=[ts])),
    "all read": ("mention", lambda p, ts, at: p.bob.ok("channels.markAll")),
    "a thread read": ("thread", lambda p, ts, at: p.bob.ok("threads.mark", channel=at[0], thread_ts=at[1], ts=ts)),
    "deleted": ("direct", lambda p, ts, at: p.ann.ok("chat.delete", channel=at[0], ts=ts)),
    "edited, then deleted": ("direct", lambda p, ts, at: (p.edit(at, ts, "oops"), p.ann.ok("chat.delete", channel=at[0], ts=ts))),
    "edited, then read": ("mention", lambda p, ts, at: (p.edit(at, ts, f"<@{p.bob.id}> y"), p.bob.ok("channels.mark", channel=at[0], ts=ts))),
    "a mention removed": ("mention", lambda p, ts, at: p.edit(at, ts, "nobody")),
    "@channel removed": ("all", lambda p, ts, at: p.edit(at, ts, "nobody")),
    "kicked": ("mention", lambda p, ts, at: p.ann.ok("channels.kick", channel=at[0], user=p.bob.id)),
    "left": ("mention", lambda p, ts, at: p.bob.ok("channels.leave", channel=at[0])),
    "archived": ("mention", lambda p, ts, at: p.ann.ok("channels.archive", channel=at[0])),
    "muted": ("direct", lambda p, ts, at: p.bob.ok("channels.setNotifications", channel=at[0], muted=True)),
    "no notifications of the channel": ("mention", lambda p, ts, at: p.bob.ok("channels.setNotifications", channel=at[0], notify="none")),
    "no notifications": ("direct", lambda p, ts, at: p.bob.ok("notifications.set", level="none")),
    "closed": ("direct", lambda p, ts, at: p.bob.ok("conversations.close", channel=at[0])),
    "unfollowed": ("thread", lambda p, ts, at: p.bob.ok("threads.unfollow", channel=at[0], thread_ts=at[1])),
    "deactivated": ("mention", lambda p, ts, at: p.admin.ok("admin.users.setActive", user_id=p.bob.id, active=False)),
}


@pytest.mark.parametrize("why", WITHDRAWN)
def test_a_notification_is_withdrawn(pair, why):
    """By one silent push with the ts that the phone shows, and with the badge."""
    how, act = WITHDRAWN[why]
    ts, place = pair.show(how)
    before = len(pair.phone.pushes)
    act(pair, ts, place)
    pair.wait_gone()
    last = pair.phone.pushes[-1]
    badge = 1 if why.startswith("no notifications") else 0
    assert (last.channel, last.thread, last.ts, last.badge) == (*place, ts, badge)
    silent = [push for push in pair.phone.pushes[before:] if not push.title]
    assert len(silent) == 1 and not any(push.rings for push in pair.phone.pushes[before:])


@pytest.mark.parametrize("while_", ["snoozed", "active"])
@pytest.mark.parametrize("why", ["read", "read, but not what waits", "deleted", "edited, then deleted"])
def test_it_is_withdrawn_though_something_else_waits(pair, sockets, why, while_):
    ts, place = pair.show()
    if while_ == "snoozed":
        pair.bob.ok("dnd.setSnooze", num_minutes=600)
    else:
        socket = sockets(pair.bob)
        socket.request({"id": 1, "type": "channel_blur", "channel": pair.channel})
    other = pair.ann.post(pair.direct, "waits")
    wait_until(lambda: pair.phone.badge == 2)
    if why == "read":
        pair.bob.ok("channels.mark", channel=pair.direct, ts=other)
    elif why == "read, but not what waits":
        pair.bob.ok("channels.mark", channel=pair.direct, ts=ts)
    else:
        WITHDRAWN[why][1](pair, ts, place)
    wait_until(lambda: ts not in pair.shown, what="it withdrawn")
    assert (pair.direct, ts) in pair.phone.withdrawals and (pair.direct, other) not in pair.phone.withdrawals


def test_each_of_several_is_withdrawn(pair):
    first, _ = pair.show("mention")
    second = pair.ann.post(pair.direct, "two")
    pair.wait_shown(first, second)
    root = pair.bob.post(pair.channel, "root")
    third = pair.ann.post(pair.channel, "three", thread_ts=root)
    pair.wait_shown(first, second, third)
    pair.bob.ok("channels.markAll", threads=True)
    pair.wait_gone()


def test_an_edit_makes_no_sound(pair):
    ts, place = pair.show("mention")
    pair.edit(place, ts, f"<@{pair.bob.id}> better")
    pair.wait_words(ts, f"{pair.ann.name}: @{pair.bob.name} better")
    assert [push.ts for push in pair.phone.rings][1:] == [ts] and pair.phone.badge == 1


@pytest.mark.parametrize("while_", ["snoozed", "active"])
def test_an_edit_is_seen_at_once(pair, sockets, while_):
    ts, place = pair.show()
    if while_ == "snoozed":
        pair.bob.ok("dnd.setSnooze", num_minutes=600)
    else:
        socket = sockets(pair.bob)
        socket.request({"id": 1, "type": "channel_blur", "channel": pair.channel})
    pair.edit(place, ts, "better")
    pair.wait_words(ts, "better")
    assert [push.ts for push in pair.phone.rings][1:] == [ts]


@pytest.mark.parametrize("how", ["same words", "metadata"])
def test_an_edit_that_changes_no_word_is_not_pushed(pair, how):
    ts, place = pair.show()
    before = len(pair.phone.pushes)
    if how == "metadata":
        pair.ann.ok("chat.update", channel=place[0], ts=ts, metadata={"event_type": "e", "event_payload": {"a": 1}})
    else:
        pair.edit(place, ts, "shown")
    pair.settled()
    assert [push for push in pair.phone.pushes[before:] if push.channel == place[0]] == []


def test_an_answer_that_is_streamed_rings_once(pair):
    ts, place = pair.show()
    words = "shown"
    for number in range(12):
        words += f" {number}"
        pair.edit(place, ts, words)
        time.sleep(0.1)
    pair.wait_words(ts, words)
    assert [push.ts for push in pair.phone.rings][1:] == [ts]


def test_a_mention_that_an_edit_adds_rings(pair):
    ts = pair.ann.post(pair.channel, "nobody")
    pair.edit((pair.channel, None), ts, f"<@{pair.bob.id}>, you")
    pair.wait_shown(ts)
    assert pair.phone.rings[-1].ts == ts


def test_the_earlier_message_returns_when_the_newest_is_deleted(pair):
    """Without a sound: it has made its own."""
    first, place = pair.show()
    time.sleep(PAUSE_MS / 1000)
    second = pair.ann.post(pair.direct, "wrong chat")
    pair.wait_shown(second)
    pair.ann.ok("chat.delete", channel=place[0], ts=second)
    pair.wait_shown(first)
    assert [push.ts for push in pair.phone.rings][1:] == [first, second]


def test_what_is_marked_unread_does_not_return(pair):
    ts, place = pair.show()
    pair.bob.ok("channels.mark", channel=place[0], ts=ts)
    pair.wait_gone()
    pair.bob.ok("channels.markUnread", channel=place[0], ts=ts)
    wait_until(lambda: pair.phone.badge == 1)
    pair.settled()
    assert pair.shown == set()


def test_a_private_preview_hides_what_is_shown(pair):
    ts, _ = pair.show()
    pair.bob.ok("notifications.set", preview="none")
    wait_until(lambda: [(push.title, push.body) for push in pair.phone.screen.values()] == [("New message", None)], what="it hidden")
    assert pair.shown == {ts} and [push.ts for push in pair.phone.rings][1:] == [ts]


def test_who_was_active_is_told_when_they_are_not(pair, sockets):
    """Unless it has been read meanwhile."""
    socket = sockets(pair.bob)
    frame = {"id": 1, "type": "channel_blur", "channel": pair.channel}
    socket.request(frame)
    read, kept = pair.ann.post(pair.direct, "you see this"), pair.mention("but not this")
    wait_until(lambda: socket.request(frame) and pair.phone.badge == 2, interval=0.2)
    pair.bob.ok("channels.mark", channel=pair.direct, ts=read)
    pair.wait_shown(kept)
    assert [push.ts for push in pair.phone.rings][1:] == [kept]


def test_who_stays_active_is_not_told(pair, sockets):
    socket = sockets(pair.bob)
    for number in range(1, 2 * ACTIVE_S * 5):
        socket.request({"id": number, "type": "channel_blur", "channel": pair.channel})
        if number == 1:
            pair.mention("wait")
        time.sleep(0.2)
    assert len(pair.phone.rings) == 1 and pair.phone.badge == 1
    wait_until(lambda: len(pair.phone.rings) == 2, what="told at last")


def test_a_snooze_made_shorter(environment, pair):
    """What it held back comes at the new end."""
    pair.bob.ok("dnd.setSnooze", num_minutes=600)
    ts = pair.mention("later")
    with environment.database() as database:
        def held_s():
            row = database.execute("SELECT extract(epoch FROM due_at - now()) FROM push_jobs WHERE is_quiet AND user_id = %s", [pair.bob.id]).fetchone()
            return row and row[0]

        wait_until(lambda: held_s() and held_s() > 30000, what="it held back")
        pair.bob.ok("dnd.setSnooze", num_minutes=1)
        wait_until(lambda: held_s() and held_s() < 61, what="the new end")
        pair.bob.ok("dnd.setSnooze", num_minutes=30)
        wait_until(lambda: held_s() and held_s() > 1000, what="the later end")
    assert pair.shown == set()
    pair.bob.ok("dnd.endSnooze")
    pair.wait_shown(ts)


def wait_held(environment, pair, count):
    """Waits until so many conversations are put off to the end of the snooze."""
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT count(*) FROM push_jobs WHERE is_quiet AND user_id = %s", [pair.bob.id]).fetchone()[0] == count,
                   what=f"{count} conversations put off")


def summary(pair):
    """The conversations that the phone's summary names."""
    push = pair.phone.screen.get((None, None))
    return push and (push.title, push.body)


def test_the_summary_speaks_of_what_is_unread(environment, pair):
    """It is replaced without a sound, and withdrawn at last."""
    name = "#" + pair.bob.ok("channels.info", channel=pair.channel)["channel"]["name"]
    pair.bob.ok("dnd.setSnooze", num_minutes=600)
    direct, mention = pair.ann.post(pair.direct, "one"), pair.mention("two")
    wait_held(environment, pair, 2)
    pair.bob.ok("dnd.endSnooze")
    wait_until(lambda: summary(pair) == ("New messages", f"{name}, {pair.ann.name}"), what="the summary")
    pair.bob.ok("channels.mark", channel=pair.channel, ts=mention)
    wait_until(lambda: summary(pair) == ("New messages", pair.ann.name), what="the other one alone")
    pair.ann.ok("chat.delete", channel=pair.direct, ts=direct)
    wait_until(lambda: summary(pair) is None, what="nothing left")
    assert len(pair.phone.rings) == 2 and pair.phone.badge == 0


def test_a_snooze_that_ends_just_after_a_post(environment, pair):
    """Before it is decided what to do with the post: one sound for all."""
    pair.bob.ok("dnd.setSnooze", num_minutes=600)
    pair.ann.post(pair.direct, "one")
    pair.mention("two")
    wait_held(environment, pair, 2)
    with environment.database() as database:
        database.execute("UPDATE push_jobs SET due_at = now() WHERE is_quiet AND user_id = %s", [pair.bob.id])
    pair.bob.ok("dnd.endSnooze")
    wait_until(lambda: summary(pair), what="the summary")
    pair.phone.wait_badge(2)
    ts = pair.mention("three")
    wait_until(lambda: ts in pair.shown, what="the next one")
    assert [push.channel for push in pair.phone.rings[1:]] == [None, pair.channel]


def test_a_new_message_leaves_the_summary(environment, pair):
    pair.bob.ok("dnd.setSnooze", num_minutes=600)
    pair.ann.post(pair.direct, "one")
    pair.mention("two")
    wait_held(environment, pair, 2)
    pair.bob.ok("dnd.endSnooze")
    wait_until(lambda: summary(pair), what="the summary")
    ts = pair.mention("three")
    wait_until(lambda: summary(pair) == ("New messages", pair.ann.name) and ts in pair.shown, what="the channel apart")
    pair.bob.ok("channels.markAll")
    pair.wait_gone()


def test_who_returns_has_the_badge_again(pair):
    pair.show("mention")
    pair.admin.ok("admin.users.setActive", user_id=pair.bob.id, active=False)
    wait_until(lambda: pair.phone.badge == 0)
    pair.admin.ok("admin.users.setActive", user_id=pair.bob.id, active=True)
    wait_until(lambda: pair.phone.badge == 1)
