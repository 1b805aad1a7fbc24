# SPDX-License-Identifier: Apache-2.0
"""Threads: followers, marks, unread replies, and frames for devices."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.retention import housekeep
from tests.support.wait import wait_until

NEVER = "0000000000.000000"
LONG_AGO = "1000000000.000000"
FAR_AHEAD = "9999999999.999999"
RT = {"channel", "thread_ts", "last_read", "has_unreads", "unread_count", "mention_count", "subscribed"}
CHANGES = pytest.mark.parametrize("method", ["threads.mark", "threads.follow", "threads.unfollow"])


@pytest.fixture
def room(workspace):
    """(ann, bob, cid, channel, root): three members, and a message of ann's."""
    ann, bob, cid = workspace.users(3)
    channel = workspace.channel(ann, bob, cid)
    return ann, bob, cid, channel, ann.post(channel, "root")


def before(ts):
    """The microsecond before, where no message is."""
    number = int(ts.replace(".", "")) - 1
    return f"{number // 1_000_000:010}.{number % 1_000_000:06}"


def threads(client, **args):
    return client.ok("threads.list", **args)["threads"]


def state(client, channel, root):
    """RT as threads.list has it; None when the thread is not there."""
    found = [t for t in threads(client) if (t["channel"], t["thread_ts"]) == (channel, root)]
    return {name: found[0][name] for name in RT} if found else None


def parent(client, channel, root):
    return client.ok("channels.replies", channel=channel, ts=root)["messages"][0]


def unread(client, channel, root):
    """The count as the list, the totals (of one thread) and the replies say it."""
    count = state(client, channel, root)["unread_count"]
    assert parent(client, channel, root)["unread_count"] == count
    return count


def totals(client):
    return client.ok("threads.list")["totals"]


# Who follows.

def test_a_replier_follows_from_the_reply_on(room):
    ann, bob, cid, channel, root = room
    cid.post(channel, "before", thread_ts=root)
    own = bob.post(channel, "own", thread_ts=root)
    assert state(bob, channel, root) == {
        "channel": channel, "thread_ts": root, "last_read": own, "has_unreads": False, "unread_count": 0,
        "mention_count": 0, "subscribed": True}
    cid.post(channel, "after", thread_ts=root)
    assert unread(bob, channel, root) == 1


def test_the_author_of_a_root_follows_from_the_first_reply(room):
    ann, bob, cid, channel, root = room
    assert threads(ann) == []
    bob.post(channel, "one", thread_ts=root)
    cid.post(channel, "two", thread_ts=root)
    assert unread(ann, channel, root) == 2
    assert state(ann, channel, root)["last_read"] == NEVER


def test_who_neither_wrote_nor_follows_has_nothing(room):
    ann, bob, cid, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    assert state(cid, channel, root) is None
    seen = parent(cid, channel, root)
    assert seen["subscribed"] is False and "unread_count" not in seen and "last_read" not in seen


def test_replying_moves_no_cursor_and_own_replies_do_not_count(room):
    ann, bob, _, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    ann.post(channel, "own", thread_ts=root)
    assert unread(ann, channel, root) == 1 and state(ann, channel, root)["last_read"] == NEVER


def test_a_follow_by_hand_starts_at_the_newest_reply(room):
    ann, bob, cid, channel, root = room
    last = [bob.post(channel, "r", thread_ts=root) for _ in range(3)][-1]
    reply = cid.ok("threads.follow", channel=channel, thread_ts=root)
    assert set(reply) >= RT and reply["subscribed"] is True and reply["last_read"] == last
    assert unread(cid, channel, root) == 0
    bob.post(channel, "r", thread_ts=root)
    assert cid.ok("threads.follow", channel=channel, thread_ts=root)["unread_count"] == 1
    assert unread(cid, channel, root) == 1


def test_a_root_without_replies_can_be_followed(room):
    ann, bob, cid, channel, root = room
    assert cid.ok("threads.follow", channel=channel, thread_ts=root)["last_read"] == NEVER
    listed = threads(cid)[0]
    assert listed["root"]["ts"] == root and "latest_reply" not in listed
    bob.post(channel, "r", thread_ts=root)
    assert unread(cid, channel, root) == 1


def test_who_unfollows_has_nothing_unread_until_they_come_back(room):
    ann, bob, cid, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    reply = ann.ok("threads.unfollow", channel=channel, thread_ts=root)
    assert reply["subscribed"] is False and reply["unread_count"] == 0 and reply["has_unreads"] is False
    bob.post(channel, "two", thread_ts=root)
    assert state(ann, channel, root) is None and totals(ann)["unread_count"] == 0
    own = ann.post(channel, "back", thread_ts=root)
    assert state(ann, channel, root)["last_read"] == own
    bob.post(channel, "three", thread_ts=root)
    assert unread(ann, channel, root) == 1


def test_an_author_can_unfollow_before_the_first_reply(room):
    ann, bob, _, channel, root = room
    ann.ok("threads.unfollow", channel=channel, thread_ts=root)
    bob.post(channel, "one", thread_ts=root)
    assert state(ann, channel, root) is None


def test_who_is_mentioned_follows_with_that_reply_unread(room):
    ann, bob, cid, channel, root = room
    bob.post(channel, "before", thread_ts=root)
    named = bob.post(channel, f"ask <@{cid.id}>", thread_ts=root)
    bob.post(channel, "after", thread_ts=root)
    assert unread(cid, channel, root) == 2 and state(cid, channel, root)["mention_count"] == 1
    assert totals(cid) == {"has_unreads": True, "unread_count": 2, "mention_count": 1}
    reply = cid.ok("threads.mark", channel=channel, thread_ts=root, ts=named)
    assert (reply["unread_count"], reply["mention_count"]) == (1, 0)


def test_a_mention_brings_back_who_unfollowed(room):
    ann, bob, cid, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    ann.ok("threads.unfollow", channel=channel, thread_ts=root)
    bob.post(channel, "two", thread_ts=root)
    bob.post(channel, f"<@{ann.id}>", thread_ts=root)
    assert unread(ann, channel, root) == 1


def test_a_mention_does_not_move_the_cursor_of_a_follower(room):
    ann, bob, _, channel, root = room
    for _ in range(2):
        bob.post(channel, "r", thread_ts=root)
    bob.post(channel, f"<@{ann.id}>", thread_ts=root)
    assert unread(ann, channel, root) == 3


def test_an_edit_that_mentions_and_one_that_does_no_longer(room):
    ann, bob, cid, channel, root = room
    edited = bob.post(channel, "nobody", thread_ts=root)
    bob.post(channel, "later", thread_ts=root)
    bob.ok("chat.update", channel=channel, ts=edited, text=f"now <@{cid.id}>")
    assert unread(cid, channel, root) == 2 and state(cid, channel, root)["mention_count"] == 1
    bob.ok("chat.update", channel=channel, ts=edited, text="nobody again")
    assert unread(cid, channel, root) == 2 and state(cid, channel, root)["mention_count"] == 0
    cid.ok("threads.unfollow", channel=channel, thread_ts=root)
    bob.ok("chat.update", channel=channel, ts=edited, text="still nobody")
    assert state(cid, channel, root) is None


def test_a_mention_of_no_member_follows_nothing(room, workspace):
    ann, bob, _, channel, root = room
    dan = workspace.user()
    bob.post(channel, f"<@{dan.id}>", thread_ts=root)
    dan.ok("channels.join", channel=channel)
    assert state(dan, channel, root) is None


def test_a_mention_in_a_root_follows_nothing(room):
    ann, bob, cid, channel, _ = room
    root = ann.post(channel, f"<@{cid.id}>")
    bob.post(channel, "r", thread_ts=root)
    assert state(cid, channel, root) is None


# Marks.

def test_mark(room):
    ann, bob, _, channel, root = room
    ts = [bob.post(channel, "r", thread_ts=root) for _ in range(4)]
    reply = ann.ok("threads.mark", channel=channel, thread_ts=root, ts=ts[1])
    assert {name: reply[name] for name in RT} == {
        "channel": channel, "thread_ts": root, "last_read": ts[1], "has_unreads": True, "unread_count": 2,
        "mention_count": 0, "subscribed": True}
    assert unread(ann, channel, root) == 2 and parent(ann, channel, root)["last_read"] == ts[1]
    back = ann.ok("threads.mark", channel=channel, thread_ts=root, ts=ts[0])
    assert back["last_read"] == ts[1]
    assert ann.ok("threads.mark", channel=channel, thread_ts=root, ts=before(ts[3]))["last_read"] == ts[2]
    assert ann.ok("threads.mark", channel=channel, thread_ts=root, ts=FAR_AHEAD)["last_read"] == ts[3]
    bob.post(channel, "r", thread_ts=root)
    assert unread(ann, channel, root) == 1


@pytest.mark.parametrize("which", ["root", LONG_AGO])
def test_a_mark_before_the_first_reply_changes_nothing(room, which):
    ann, bob, _, channel, root = room
    bob.post(channel, "r", thread_ts=root)
    ts = root if which == "root" else which
    assert ann.ok("threads.mark", channel=channel, thread_ts=root, ts=ts)["last_read"] == NEVER
    assert unread(ann, channel, root) == 1


def test_a_mark_follows_nothing_and_is_kept(room):
    ann, bob, cid, channel, root = room
    last = bob.post(channel, "r", thread_ts=root)
    reply = cid.ok("threads.mark", channel=channel, thread_ts=root, ts=last)
    assert reply["subscribed"] is False and reply["last_read"] == last and reply["unread_count"] == 0
    assert state(cid, channel, root) is None


def test_marks_in_any_order_from_two_instances(environment, room):
    ann, bob, _, channel, root = room
    ts = [bob.post(channel, "r", thread_ts=root) for _ in range(12)]
    clients = [ann.at(url) for url in environment.urls * 6]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda pair: pair[0].ok("threads.mark", channel=channel, thread_ts=root, ts=pair[1]),
                      zip(clients, ts)))
    assert state(ann, channel, root)["last_read"] == ts[-1] and unread(ann, channel, root) == 0


def test_a_channel_mark_and_a_thread_mark_are_apart(room):
    ann, bob, _, channel, root = room
    bob.ok("channels.mark", channel=channel, ts=root)
    ann.post(channel, "top")
    last = ann.post(channel, "r", thread_ts=root)
    bob.ok("threads.follow", channel=channel, thread_ts=root)
    ann.post(channel, "r", thread_ts=root)
    bob.ok("channels.mark", channel=channel, ts=FAR_AHEAD)
    assert unread(bob, channel, root) == 1 and bob.unread(channel) == 0
    ann.post(channel, "top")
    bob.ok("threads.mark", channel=channel, thread_ts=root, ts=FAR_AHEAD)
    assert bob.unread(channel) == 1 and unread(bob, channel, root) == 0
    assert state(bob, channel, root)["last_read"] > last


def test_broadcasts_count_in_both(room):
    ann, bob, cid, channel, root = room
    cid.ok("channels.mark", channel=channel, ts=root)
    bob.post(channel, "quiet", thread_ts=root)
    loud = bob.post(channel, "loud", thread_ts=root, reply_broadcast=True)
    assert cid.unread(channel) == 1 and unread(ann, channel, root) == 2
    assert parent(ann, channel, root)["latest_reply"] == loud


# What is gone.

def test_deletes(room):
    ann, bob, cid, channel, root = room
    ts = [bob.post(channel, "r", thread_ts=root) for _ in range(3)]
    named = cid.post(channel, f"<@{ann.id}>", thread_ts=root)
    assert state(ann, channel, root)["mention_count"] == 1
    cid.ok("chat.delete", channel=channel, ts=named)
    assert (unread(ann, channel, root), state(ann, channel, root)["mention_count"]) == (3, 0)
    bob.ok("chat.delete", channel=channel, ts=ts[2])
    ann.ok("threads.mark", channel=channel, thread_ts=root, ts=ts[0])
    assert unread(ann, channel, root) == 1
    seen = parent(ann, channel, root)
    assert (seen["reply_count"], seen["latest_reply"], seen["reply_users"], seen["reply_users_count"]) == (
        2, ts[1], [bob.id], 1)
    for gone in ts[:2]:
        bob.ok("chat.delete", channel=channel, ts=gone)
    assert unread_of_empty(ann, channel, root) == 0 and "reply_count" not in parent(ann, channel, root)
    again = bob.post(channel, "again", thread_ts=root)
    seen = parent(ann, channel, root)
    assert (seen["reply_count"], seen["latest_reply"], seen["reply_users"]) == (1, again, [bob.id])
    assert unread(ann, channel, root) == 1


def unread_of_empty(client, channel, root):
    return state(client, channel, root)["unread_count"]


def test_reply_users_are_bounded_and_their_count_is_exact(room, workspace):
    ann, bob, cid, channel, root = room
    crowd = [bob, cid, *workspace.users(6)]
    for who in crowd[2:]:
        who.ok("channels.join", channel=channel)
    ts = [who.post(channel, "r", thread_ts=root) for who in crowd for _ in range(2)]
    seen = parent(ann, channel, root)
    assert seen["reply_users"] == [who.id for who in crowd[:5]]
    assert (seen["reply_users_count"], seen["reply_count"]) == (8, 16)
    bob.ok("chat.delete", channel=channel, ts=ts[0])
    assert parent(ann, channel, root)["reply_users_count"] == 8
    bob.ok("chat.delete", channel=channel, ts=ts[1])
    seen = parent(ann, channel, root)
    assert bob.id not in seen["reply_users"] and len(set(seen["reply_users"])) == 5
    assert (seen["reply_users_count"], seen["reply_count"]) == (7, 14)


def test_a_deleted_root_keeps_its_thread(room):
    ann, bob, _, channel, root = room
    last = bob.post(channel, "r", thread_ts=root)
    ann.ok("chat.delete", channel=channel, ts=root)
    listed = threads(ann)[0]
    assert listed["root"]["subtype"] == "tombstone" and listed["latest_reply"] == last
    assert ann.ok("threads.mark", channel=channel, thread_ts=root, ts=last)["unread_count"] == 0


def test_what_is_deleted_with_all_its_replies_is_in_no_list(room):
    ann, bob, cid, channel, root = room
    replies = [(bob, bob.post(channel, "one", thread_ts=root)), (cid, cid.post(channel, "two", thread_ts=root))]
    empty = ann.post(channel, "nobody replies")
    cid.ok("threads.follow", channel=channel, thread_ts=empty)
    for ts in (root, empty):
        ann.ok("chat.delete", channel=channel, ts=ts)
    for author, ts in replies:
        author.ok("chat.delete", channel=channel, ts=ts)
    assert [threads(who) for who in (ann, bob, cid)] == [[], [], []]


def test_who_leaves_has_no_threads_there_and_starts_anew(room):
    ann, bob, cid, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    cid.ok("threads.follow", channel=channel, thread_ts=root)
    bob.post(channel, f"<@{cid.id}>", thread_ts=root)
    assert totals(cid)["unread_count"] == 1
    cid.ok("channels.leave", channel=channel)
    assert totals(cid) == {"has_unreads": False, "unread_count": 0, "mention_count": 0} and threads(cid) == []
    bob.post(channel, "while away", thread_ts=root)
    cid.ok("channels.join", channel=channel)
    assert threads(cid) == []
    own = cid.post(channel, "back", thread_ts=root)
    assert state(cid, channel, root)["last_read"] == own


def test_who_is_kicked_has_no_threads_there(room):
    ann, bob, _, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    ann.post(channel, "two", thread_ts=root)
    assert totals(bob)["unread_count"] == 1
    ann.ok("channels.kick", channel=channel, user=bob.id)
    assert totals(bob)["unread_count"] == 0 and threads(bob) == []
    assert parent(ann, channel, root)["reply_users"] == [bob.id, ann.id]


def test_an_author_who_left_does_not_follow(room):
    ann, bob, cid, channel, _ = room
    root = cid.post(channel)
    cid.ok("channels.leave", channel=channel)
    bob.post(channel, "r", thread_ts=root)
    cid.ok("channels.join", channel=channel)
    assert state(cid, channel, root) is None


def test_archived_channels_do_not_count(room):
    ann, bob, _, channel, root = room
    bob.post(channel, "one", thread_ts=root)
    assert totals(ann)["has_unreads"] is True
    ann.ok("channels.archive", channel=channel)
    assert totals(ann)["has_unreads"] is False and threads(ann) == []


# The list.

def test_the_list_has_unread_first_and_newest_first(room):
    ann, bob, _, channel, _ = room
    roots = [ann.post(channel, f"root {i}") for i in range(4)]
    for root in roots:
        last = bob.post(channel, "r", thread_ts=root)
    bob.post(channel, "r", thread_ts=roots[1])
    ann.ok("threads.mark", channel=channel, thread_ts=roots[3], ts=last)
    listed = threads(ann)
    assert [t["thread_ts"] for t in listed] == [roots[1], roots[2], roots[0], roots[3]]
    assert [t["unread_count"] for t in listed] == [2, 1, 1, 0]
    assert listed[0]["root"]["text"] == "root 1" and listed[0]["root"]["reply_count"] == 2
    assert listed[0]["root"]["subscribed"] is True and listed[3]["latest_reply"] == last
    assert [t["thread_ts"] for t in threads(ann, unread_only=True)] == [roots[1], roots[2], roots[0]]
    assert totals(ann) == {"has_unreads": True, "unread_count": 4, "mention_count": 0}


def test_the_list_in_pages_while_others_write(room):
    ann, bob, _, channel, _ = room
    roots = [ann.post(channel) for _ in range(7)]
    for root in roots:
        bob.post(channel, "r", thread_ts=root)
    for root in roots[::2]:
        ann.ok("threads.mark", channel=channel, thread_ts=root, ts=FAR_AHEAD)
    expected = [t["thread_ts"] for t in threads(ann)]
    seen, cursor = [], ""
    while True:
        reply = ann.ok("threads.list", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [t["thread_ts"] for t in reply["threads"]]
        cursor = reply["response_metadata"]["next_cursor"]
        if not cursor:
            break
        for root in (roots[0], roots[5]):  # one that was read, one that was not
            bob.post(channel, "more", thread_ts=root)
        fresh = ann.post(channel)
        bob.post(channel, "r", thread_ts=fresh)
    assert seen == expected
    assert totals(ann)["unread_count"] == sum(t["unread_count"] for t in threads(ann))


@pytest.mark.parametrize("args, error", [
    ({"limit": -1}, "invalid_limit"), ({"limit": "x"}, "invalid_limit"),
    ({"cursor": "x"}, "invalid_cursor"), ({"cursor": "dDE6eA=="}, "invalid_cursor"),
    ({"unread_only": "maybe"}, "invalid_arguments")])
def test_bad_arguments_of_the_list(room, args, error):
    assert next(iter(args)) in room[0].fails(error, "threads.list", **args).messages


# Who may.

@CHANGES
def test_what_one_may_not_see_is_not_there(room, workspace, method):
    ann, bob, _, channel, root = room
    stranger = workspace.user()
    args = {"ts": root} if method == "threads.mark" else {}
    stranger.fails("not_in_channel", method, channel=channel, thread_ts=root, **args)
    secret = workspace.channel(ann, private=True)
    hidden = ann.post(secret)
    stranger.fails("channel_not_found", method, channel=secret, thread_ts=hidden, **args)
    bob.fails("channel_not_found", method, channel="C0000000000", thread_ts=root, **args)
    bob.fails("thread_not_found", method, channel=channel, thread_ts=LONG_AGO, **args)


@CHANGES
def test_of_another_workspace(room, environment, method):
    _, _, _, channel, root = room
    args = {"ts": root} if method == "threads.mark" else {}
    environment.workspace().user().fails("channel_not_found", method, channel=channel, thread_ts=root, **args)


@CHANGES
def test_a_reply_and_a_join_are_no_threads(room, workspace, method):
    ann, bob, _, channel, root = room
    reply = bob.post(channel, "r", thread_ts=root)
    joined = next(m["ts"] for m in ann.ok("channels.history", channel=channel)["messages"]
                  if m.get("subtype") == "channel_join")
    for ts in (reply, joined):
        args = {"ts": ts} if method == "threads.mark" else {}
        ann.fails("thread_not_found", method, channel=channel, thread_ts=ts, **args)


@CHANGES
@pytest.mark.parametrize("ts", ["x", "1700000000", "-700000000.000000"])
def test_malformed_ts(room, method, ts):
    ann, _, _, channel, root = room
    args = {"ts": root} if method == "threads.mark" else {}
    assert "thread_ts" in ann.fails("invalid_timestamp", method, channel=channel, thread_ts=ts, **args).messages
    if method == "threads.mark":
        assert "ts" in ann.fails("invalid_timestamp", method, channel=channel, thread_ts=root, ts=ts).messages


# Frames.

def frame_of(kind, channel, root):
    return {"type": kind, "channel": channel, "thread_ts": root}


def test_a_mark_is_told_to_native_sockets_on_all_instances(environment, room):
    ann, bob, _, channel, root = room
    last = bob.post(channel, "r", thread_ts=root)
    with ann.socket(native=True) as here, ann.at(environment.urls[1]).socket(native=True) as there, \
            ann.socket() as plain, bob.socket(native=True) as other:
        ann.ok("threads.mark", channel=channel, thread_ts=root, ts=last)
        for socket in (here, there):
            frame = socket.expect(frame_of("thread_marked", channel, root))
            assert {name: frame[name] for name in RT} == state(ann, channel, root)
            assert frame["subscription"] == {
                "type": "thread", "channel": channel, "thread_ts": root, "active": True, "last_read": last,
                "date_create": frame["subscription"]["date_create"]}
            assert frame["event_ts"]
        end = ann.post(channel, "end")
        for socket in (plain, other):
            socket.expect({"type": "message", "ts": end})
        assert plain.matching(lambda f: f["type"].startswith("thread_")) == []
        assert other.matching({"type": "thread_marked"}) == []
        assert here.matching({"type": "unread_changed"}) == []


def test_a_mark_that_changes_nothing_is_not_told(room):
    ann, bob, _, channel, root = room
    last = bob.post(channel, "r", thread_ts=root)
    with ann.socket(native=True) as socket:
        ann.ok("threads.mark", channel=channel, thread_ts=root, ts=last)
        socket.expect({"type": "thread_marked", "last_read": last})
        ann.ok("threads.mark", channel=channel, thread_ts=root, ts=last)
        newest = bob.post(channel, "r", thread_ts=root)
        ann.ok("threads.mark", channel=channel, thread_ts=root, ts=newest)
        socket.expect({"type": "thread_marked", "last_read": newest})
        assert len(socket.matching({"type": "thread_marked", "last_read": last})) == 1


def test_following_and_unfollowing_are_told(room):
    ann, bob, cid, channel, root = room
    with cid.socket(native=True) as socket:
        cid.ok("threads.follow", channel=channel, thread_ts=root)
        frame = socket.expect(frame_of("thread_subscribed", channel, root))
        assert frame["subscribed"] is True and frame["subscription"]["active"] is True
        cid.ok("threads.unfollow", channel=channel, thread_ts=root)
        frame = socket.expect(frame_of("thread_unsubscribed", channel, root))
        assert frame["subscribed"] is False and frame["subscription"]["active"] is False


def test_following_by_a_reply_is_told_to_all_who_follow_now(room):
    ann, bob, cid, channel, root = room
    with ann.socket(native=True) as author, bob.socket(native=True) as replier, cid.socket(native=True) as named:
        bob.post(channel, f"<@{cid.id}>", thread_ts=root)
        for socket in (author, replier, named):
            socket.expect(frame_of("thread_subscribed", channel, root))
        bob.post(channel, "again", thread_ts=root)
        ann.ok("threads.mark", channel=channel, thread_ts=root, ts=FAR_AHEAD)
        author.expect(frame_of("thread_marked", channel, root))
        assert [len(s.matching({"type": "thread_subscribed"})) for s in (author, replier, named)] == [1, 1, 1]


# Where it is kept.

def redis_key(user, channel, root):
    return f"thread-read:{{{user.id}}}:{channel}:{root}"


def test_redis_has_the_cursor_for_some_time_and_postgres_for_good(environment, room):
    ann, bob, _, channel, root = room
    last = bob.post(channel, "r", thread_ts=root)
    ann.ok("threads.mark", channel=channel, thread_ts=root, ts=last)
    key = redis_key(ann, channel, root)
    wait_until(lambda: environment.redis.cli("GET", key).strip() == last.replace(".", ""), what=key)
    assert 29 * 86400 < int(environment.redis.cli("TTL", key)) <= 30 * 86400
    environment.redis.cli("DEL", key)
    assert state(ann, channel, root)["last_read"] == last


def test_what_retention_drops_leaves_no_thread(environment, room):
    ann, bob, _, channel, root = room
    bob.post(channel, "kept", thread_ts=root)
    old = 1_600_000_000_000_000
    with environment.database() as database:
        database.execute("SELECT message_partition_make(to_timestamp(1600000000))")
        for ts, thread, who in ((old, None, ann), (old + 1, old, bob)):
            database.execute("INSERT INTO messages (channel_id, ts, seq, ord, user_id, counted, thread_ts, body)"
                             " VALUES (%s, %s, 1, 1, %s, false, %s, 'old')", (channel, ts, who.id, thread))
        database.execute("INSERT INTO threads (channel_id, ts, user_id, reply_count, latest_reply, last_ts)"
                         " VALUES (%s, %s, %s, 1, %s, %s)", (channel, old, ann.id, old + 1, old + 1))
        database.execute("INSERT INTO thread_members (channel_id, thread_ts, user_id, following)"
                         " VALUES (%s, %s, %s, true)", (channel, old, ann.id))
        assert totals(ann)["unread_count"] == 2 and len(threads(ann)) == 2
        housekeep(database)
    assert totals(ann)["unread_count"] == 1
    assert [t["thread_ts"] for t in threads(ann)] == [root]


# Exactness.

def test_the_counts_in_sql_under_concurrent_replies_and_deletes(environment, room):
    ann, bob, cid, channel, _ = room
    roots = [ann.post(channel) for _ in range(3)]

    def work(client):
        for i in range(12):
            ts = client.post(channel, f"<@{ann.id}>" if i % 3 == 0 else "r", thread_ts=roots[i % 3])
            if i % 4 == 0:
                client.ok("chat.delete", channel=channel, ts=ts)
            if i % 5 == 0:
                client.ok("threads.mark", channel=channel, thread_ts=roots[i % 3], ts=ts)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, [who.at(url) for who in (ann, bob, cid) for url in environment.urls]))
    with environment.database() as database:
        for root in roots:
            number = int(root.replace(".", ""))
            count, users, latest = database.execute(
                "SELECT count(*), count(DISTINCT user_id), max(ts) FROM messages"
                " WHERE channel_id = %s AND thread_ts = %s AND NOT deleted", (channel, number)).fetchone()
            seen = parent(ann, channel, root)
            assert (seen["reply_count"], seen["reply_users_count"]) == (count, users)
            assert seen["latest_reply"].replace(".", "") == str(latest)
            assert len(set(seen["reply_users"])) == users
            for who in (ann, bob, cid):
                cursor = int(state(who, channel, root)["last_read"].replace(".", ""))
                left = database.execute(
                    "SELECT count(*) FROM messages WHERE channel_id = %s AND thread_ts = %s AND ts > %s"
                    " AND user_id <> %s AND NOT deleted", (channel, number, cursor, who.id)).fetchone()[0]
                assert unread(who, channel, root) == left
    for who in (ann, bob, cid):
        assert totals(who)["unread_count"] == sum(t["unread_count"] for t in threads(who))


def test_the_history_tells_it_too(room):
    ann, bob, cid, channel, root = room
    last = bob.post(channel, "r", thread_ts=root)
    seen = next(m for m in ann.history(channel) if m["ts"] == root)
    assert (seen["subscribed"], seen["last_read"], seen["unread_count"]) == (True, NEVER, 1)
    assert (seen["reply_count"], seen["latest_reply"], seen["reply_users"]) == (1, last, [bob.id])
    assert next(m for m in cid.history(channel) if m["ts"] == root)["subscribed"] is False
