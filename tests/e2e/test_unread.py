# SPDX-License-Identifier: Apache-2.0
"""Unread counts: counted messages, marks, and markUnread."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg.errors import LockNotAvailable

from tests.support.reading import READ_STATE
from tests.support.retention import AGE, DAY, housekeep, make_older
from tests.support.wait import wait_until
from tests.support.workspace import fresh_name

FAMILIES = pytest.mark.parametrize("family", ["channels", "conversations"])
LONG_AGO = "1000000000.000000"
MANY = 200_000
FAR_AHEAD = "9999999999.999999"


def read_state(client, channel):
    info = client.ok("channels.info", channel=channel)["channel"]
    return {**{name: info[name] for name in READ_STATE if name != "channel"}, "channel": channel,
            **({"oldest_unread_ts": info["oldest_unread_ts"]} if "oldest_unread_ts" in info else {})}


def synced(client, channel):
    """The channel's entry of unread.sync."""
    return next(entry for entry in client.ok("unread.sync")["channels"] if entry["id"] == channel)


def agrees(client, channel, count):
    """channels.info at once, and unread.sync soon, say `count`."""
    assert client.unread(channel) == count
    wait_until(lambda: synced(client, channel)["unread_count"] == count, what=f"unread.sync of {count}")


def test_posts_of_others_count(room):
    ann, bob, channel = room
    for count in range(1, 6):
        ts = ann.post(channel)
        agrees(bob, channel, count)
    state = read_state(bob, channel)
    assert state["has_unreads"] is True and state["unread_count_display"] == 5 and state["oldest_unread_ts"] <= ts


def test_own_posts_never_count_and_move_no_cursor(room):
    ann, bob, channel = room
    ann.post(channel, "first")
    before = read_state(bob, channel)
    for _ in range(3):
        bob.post(channel, "own")
    after = read_state(bob, channel)
    assert after["unread_count"] == 1 and after["last_read"] == before["last_read"]
    ann.post(channel, "second")
    agrees(bob, channel, 2)
    agrees(ann, channel, 3)


def test_posts_of_bots_count(room, workspace):
    ann, _, channel = room
    bot = workspace.bot()
    ann.ok("channels.invite", channel=channel, users=[bot.id])
    bot.post(channel, "beep")
    agrees(ann, channel, 1)


def test_thread_replies_do_not_count_but_broadcasts_do(room):
    ann, bob, channel = room
    root = ann.post(channel)
    ann.post(channel, "quiet", thread_ts=root)
    agrees(bob, channel, 1)
    ann.post(channel, "loud", thread_ts=root, reply_broadcast=True)
    agrees(bob, channel, 2)


def test_edits_joins_leaves_do_not_count(room, workspace):
    ann, bob, channel = room
    ts = ann.post(channel)
    ann.ok("chat.update", channel=channel, ts=ts, text="edited")
    cid = workspace.user()
    cid.ok("channels.join", channel=channel)
    cid.ok("channels.leave", channel=channel)
    agrees(bob, channel, 1)


@FAMILIES
def test_mark(room, family):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(5)]
    reply = bob.ok(f"{family}.mark", channel=channel, ts=ts[2])
    for name in READ_STATE:
        assert name in reply, name
    assert reply["channel"] == channel and reply["last_read"] == ts[2]
    assert reply["unread_count"] == 2 and reply["oldest_unread_ts"] == ts[3] and reply["has_unreads"] is True
    agrees(bob, channel, 2)
    reply = bob.ok(f"{family}.mark", channel=channel, ts=ts[4])
    assert reply["unread_count"] == 0 and reply["has_unreads"] is False and "oldest_unread_ts" not in reply
    agrees(bob, channel, 0)


def test_who_marks_and_reads_sees_the_mark_at_once(environment, room):
    ann, bob, channel = room
    there = bob.at(environment.urls[1])
    for _ in range(30):
        ts = ann.post(channel)
        bob.ok("channels.mark", channel=channel, ts=ts)
        assert bob.unread(channel) == 0
        assert there.unread(channel) == 0


def test_a_cursor_never_goes_back_by_a_mark(room):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(5)]
    bob.ok("channels.mark", channel=channel, ts=ts[3])
    reply = bob.ok("channels.mark", channel=channel, ts=ts[0])
    assert reply["last_read"] == ts[3] and reply["unread_count"] == 1
    agrees(bob, channel, 1)


def test_marks_in_any_order_from_two_instances(environment, room):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(16)]
    clients = [bob.at(url) for url in environment.urls * 8]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda pair: pair[0].ok("channels.mark", channel=channel, ts=pair[1]), zip(clients, ts)))
    assert read_state(bob, channel)["last_read"] == ts[-1]
    agrees(bob, channel, 0)


def test_a_mark_between_messages_means_the_one_before(room):
    ann, bob, channel = room
    first, second = ann.post(channel), ann.post(channel)
    between = f"{second[:11]}{int(second[11:]) - 1:06d}" if second[11:] != "000000" else first
    reply = bob.ok("channels.mark", channel=channel, ts=between)
    assert reply["last_read"] == first and reply["unread_count"] == 1


def test_a_mark_past_the_head_means_the_head(room):
    ann, bob, channel = room
    last = ann.post(channel)
    assert bob.ok("channels.mark", channel=channel, ts=FAR_AHEAD)["last_read"] == last
    ann.post(channel)
    agrees(bob, channel, 1)


def test_a_mark_before_all_changes_nothing(room):
    ann, bob, channel = room
    ann.post(channel)
    before = read_state(bob, channel)
    bob.ok("channels.mark", channel=channel, ts=LONG_AGO)
    assert read_state(bob, channel) == before


@pytest.mark.parametrize("ts", ["", "x", "1700000000", "1700000000.00000", "1700000000.0000000", "-700000000.000000",
                                "1700000000,000000", " 1700000000.000000", ["1700000000.000000"]])
@pytest.mark.parametrize("method", ["channels.mark", "channels.markUnread", "conversations.mark"])
def test_malformed_ts(room, method, ts):
    ann, bob, channel = room
    ann.post(channel)
    before = read_state(bob, channel)
    reply = bob.fails(("invalid_timestamp", "invalid_arguments", "missing_argument") if ts == "" else
                      "invalid_timestamp", method, channel=channel, ts=ts)
    assert "ts" in reply.messages
    assert read_state(bob, channel) == before


def test_deletes_of_unread_messages(room):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(4)]
    ann.ok("chat.delete", channel=channel, ts=ts[1])
    agrees(bob, channel, 3)
    ann.ok("chat.delete", channel=channel, ts=ts[3])
    agrees(bob, channel, 2)
    assert bob.ok("channels.mark", channel=channel, ts=ts[0])["unread_count"] == 1
    ann.ok("chat.delete", channel=channel, ts=ts[2])
    agrees(bob, channel, 0)


def test_deletes_of_read_messages(room):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(4)]
    bob.ok("channels.mark", channel=channel, ts=ts[1])
    ann.ok("chat.delete", channel=channel, ts=ts[0])
    ann.ok("chat.delete", channel=channel, ts=ts[1])
    agrees(bob, channel, 2)


def test_deletes_of_own_messages(room):
    ann, bob, channel = room
    ann.post(channel)
    own = bob.post(channel)
    agrees(bob, channel, 1)
    bob.ok("chat.delete", channel=channel, ts=own)
    agrees(bob, channel, 1)
    agrees(ann, channel, 0)


def test_deletes_of_thread_replies_and_broadcasts(room):
    ann, bob, channel = room
    root = ann.post(channel)
    quiet = ann.post(channel, "q", thread_ts=root)
    loud = ann.post(channel, "l", thread_ts=root, reply_broadcast=True)
    ann.ok("chat.delete", channel=channel, ts=quiet)
    agrees(bob, channel, 2)
    ann.ok("chat.delete", channel=channel, ts=loud)
    agrees(bob, channel, 1)


def test_oldest_unread_skips_own_and_deleted(room):
    ann, bob, channel = room
    first = ann.post(channel)
    bob.post(channel, "own")
    wanted = ann.post(channel)
    assert read_state(bob, channel)["oldest_unread_ts"] == first
    ann.ok("chat.delete", channel=channel, ts=first)
    assert read_state(bob, channel)["oldest_unread_ts"] == wanted


@FAMILIES
def test_mark_unread(room, family):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(5)]
    bob.ok("channels.mark", channel=channel, ts=ts[4])
    reply = bob.ok(f"{family}.markUnread", channel=channel, ts=ts[2])
    assert reply["read_epoch"] == 1 and reply["unread_count"] == 3
    assert reply["last_read"] == ts[1] and reply["oldest_unread_ts"] == ts[2]
    agrees(bob, channel, 3)
    assert bob.ok(f"{family}.markUnread", channel=channel, ts=ts[0])["read_epoch"] == 2
    agrees(bob, channel, 5)


def test_mark_unread_between_messages_means_the_next(room):
    ann, bob, channel = room
    ann.post(channel)
    last = ann.post(channel)
    bob.ok("channels.mark", channel=channel, ts=last)
    between = f"{last[:11]}{int(last[11:]) - 1:06d}" if last[11:] != "000000" else last
    assert bob.ok("channels.markUnread", channel=channel, ts=between)["unread_count"] == 1


def test_mark_unread_of_everything(room):
    ann, bob, channel = room
    ann.post(channel)
    last = ann.post(channel)
    bob.ok("channels.mark", channel=channel, ts=last)
    assert bob.ok("channels.markUnread", channel=channel, ts=LONG_AGO)["unread_count"] == 2


def test_mark_unread_past_the_head_leaves_nothing_unread(room):
    ann, bob, channel = room
    bob.ok("channels.mark", channel=channel, ts=ann.post(channel))
    assert bob.ok("channels.markUnread", channel=channel, ts=FAR_AHEAD)["unread_count"] == 0


def test_mark_unread_of_much_holds_up_no_post(environment, room):
    """Counting the user's own posts among many messages takes time: the channel is not locked meanwhile."""
    ann, bob, channel = room
    tried = taken = 0
    with environment.database() as database, ThreadPoolExecutor(1) as pool:
        database.execute("SELECT channel_cool(%s)", [channel])
        database.execute("INSERT INTO messages (channel_id, ts, seq, ord, user_id, counted, body) SELECT id, last_ts + n, seq + n, n, %s, true, ''"
                         " FROM channels, generate_series(1, %s) n WHERE id = %s", [ann.id, MANY, channel])
        database.execute("UPDATE channels SET last_ts = last_ts + %(n)s, seq = seq + %(n)s, ord = %(n)s WHERE id = %(c)s",
                         {"n": MANY, "c": channel})
        database.execute("UPDATE channel_members SET posts = %s, own = 0 WHERE channel_id = %s AND user_id = %s", [MANY, channel, ann.id])
        bob.post(channel)
        marks = pool.submit(bob.ok, "channels.markUnread", channel=channel, ts=LONG_AGO)
        while not marks.done():
            try:
                tried += 1
                database.execute("SELECT 1 FROM channels WHERE id = %s FOR NO KEY UPDATE NOWAIT", [channel])
            except LockNotAvailable:
                taken += 1
    assert marks.result()["unread_count"] == MANY
    assert taken <= tried / 2, f"{taken} of {tried}"


def test_mark_unread_that_waits_for_retention_does_not_stop_it(environment, room):
    """Dropping a month of messages locks its channels first, and then requests messages exclusively."""
    ann, bob, channel = room
    ts = ann.post(channel)
    bob.ok("channels.mark", channel=channel, ts=ts)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%mark_unread%'"
    with environment.database() as database, environment.database() as watch, ThreadPoolExecutor(1) as pool:
        with database.transaction():
            database.execute("SELECT 1 FROM channels WHERE id = %s FOR NO KEY UPDATE", [channel])
            marks = pool.submit(bob.ok, "channels.markUnread", channel=channel, ts=ts)
            wait_until(lambda: watch.execute(waiting).fetchone()[0], what="the mark waits")
            database.execute("SET LOCAL lock_timeout = '500ms'")
            database.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        assert marks.result()["unread_count"] == 1


def test_who_is_taken_out_while_mark_unread_waits_is_told_nothing(environment, room, workspace):
    ann, bob, channel = room
    ts = ann.post(channel)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%mark_unread%'"
    with environment.database() as database, environment.database() as watch, ThreadPoolExecutor(1) as pool:
        with database.transaction():
            kick = "SELECT error FROM channels_kick(%s, %s, %s, false, %s, %s)"
            assert database.execute(kick, [fresh_name("row"), workspace.id, ann.id, channel, bob.id]).fetchone() == (None,)
            marks = pool.submit(bob.fails, "not_in_channel", "channels.markUnread", channel=channel, ts=ts)
            wait_until(lambda: watch.execute(waiting).fetchone()[0], what="the mark waits")
        marks.result()


def test_a_mark_of_the_epoch_before_changes_nothing(room):
    ann, bob, channel = room
    ts = [ann.post(channel) for _ in range(3)]
    bob.ok("channels.mark", channel=channel, ts=ts[2], read_epoch=0)
    bob.ok("channels.markUnread", channel=channel, ts=ts[0])
    for replay in (ts[1], ts[2]):
        reply = bob.ok("channels.mark", channel=channel, ts=replay, read_epoch=0)
        assert (reply["read_epoch"], reply["unread_count"]) == (1, 3)
    assert bob.ok("channels.mark", channel=channel, ts=ts[1], read_epoch=1)["unread_count"] == 1
    agrees(bob, channel, 1)


def test_a_mark_without_an_epoch_is_of_the_present_one(room):
    ann, bob, channel = room
    ts = ann.post(channel)
    bob.ok("channels.markUnread", channel=channel, ts=ts)
    assert bob.ok("channels.mark", channel=channel, ts=ts)["unread_count"] == 0


@pytest.mark.parametrize("epoch", [-1, "x", 1.5, [0]])
def test_bad_epochs(room, epoch):
    ann, bob, channel = room
    ts = ann.post(channel)
    assert "read_epoch" in bob.fails("invalid_arguments", "channels.mark", channel=channel, ts=ts,
                                     read_epoch=epoch).messages
    assert bob.unread(channel) == 1


def test_own_and_deleted_after_mark_unread(room):
    """A message that is own and deleted is subtracted once, not twice."""
    ann, bob, channel = room
    first = ann.post(channel)
    own = bob.post(channel)
    ann.post(channel)
    bob.ok("chat.delete", channel=channel, ts=own)
    last = ann.post(channel)
    bob.ok("channels.mark", channel=channel, ts=last)
    assert bob.ok("channels.markUnread", channel=channel, ts=first)["unread_count"] == 3
    agrees(bob, channel, 3)


def test_a_join_starts_at_the_head(room, workspace):
    ann, _, channel = room
    for _ in range(3):
        ann.post(channel)
    cid = workspace.user()
    cid.ok("channels.join", channel=channel)
    agrees(cid, channel, 0)
    ann.post(channel)
    agrees(cid, channel, 1)


def test_an_invited_member_starts_at_the_head(room, workspace):
    ann, _, channel = room
    ann.post(channel)
    cid = workspace.user()
    ann.ok("channels.invite", channel=channel, users=[cid.id])
    agrees(cid, channel, 0)


def test_a_rejoin_starts_anew(room):
    ann, bob, channel = room
    ann.post(channel)
    own = bob.post(channel)
    bob.ok("channels.leave", channel=channel)
    ann.post(channel)
    bob.ok("channels.join", channel=channel)
    agrees(bob, channel, 0)
    ann.post(channel)
    agrees(bob, channel, 1)
    bob.ok("chat.delete", channel=channel, ts=own)
    agrees(bob, channel, 1)


def test_a_mark_from_before_leaving_changes_nothing_after_a_rejoin(room):
    ann, bob, channel = room
    epoch = read_state(bob, channel)["read_epoch"]
    bob.ok("channels.leave", channel=channel)
    bob.ok("channels.join", channel=channel)
    ts = ann.post(channel)
    bob.ok("channels.mark", channel=channel, ts=ts, read_epoch=epoch)
    agrees(bob, channel, 1)


def test_counts_are_exact_on_both_instances_under_concurrent_posts(environment, room, workspace):
    ann, bob, channel = room
    cid = workspace.user()
    cid.ok("channels.join", channel=channel)
    posters = [who.at(url) for who in (ann, bob) for url in environment.urls for _ in range(2)]
    with ThreadPoolExecutor(len(posters)) as pool:
        list(pool.map(lambda client: [client.post(channel) for _ in range(10)], posters))
    for client in (cid, cid.at(environment.urls[1])):
        agrees(client, channel, 80)
    agrees(ann, channel, 40)


def test_the_count_in_sql(environment, room):
    """The number shown is the number of rows that are unread, by the definition."""
    ann, bob, channel = room
    root = ann.post(channel)
    for i in range(12):
        (ann if i % 3 else bob).post(channel)
    gone = ann.post(channel)
    ann.ok("chat.delete", channel=channel, ts=gone)
    ann.post(channel, "t", thread_ts=root)
    bob.ok("channels.mark", channel=channel, ts=root)
    cursor = int(read_state(bob, channel)["last_read"].replace(".", ""))
    with environment.database() as database:
        counted = database.execute(
            "SELECT count(*) FROM messages WHERE channel_id = %s AND ts > %s AND user_id <> %s AND counted"
            " AND NOT deleted", (channel, cursor, bob.id)).fetchone()[0]
    assert counted == 8
    agrees(bob, channel, counted)


def test_months_that_are_dropped_together(environment, room):
    """In whatever order Postgres has them: own posts of the first month do not hide messages after the last."""
    ann, bob, channel = room
    bob.post(channel, "own")
    for text in ("dropped", "kept"):
        ann.post(channel, text)
    with environment.database() as database:
        first = database.execute("SELECT min(seq) FROM messages WHERE channel_id = %s AND counted", [channel]).fetchone()[0]
        make_older(database, channel, first + 1, first + 1)
        make_older(database, channel, 1, first, AGE + 31 * DAY)
        database.execute("UPDATE channel_members SET ts = 0 WHERE channel_id = %s AND user_id = %s", [channel, bob.id])
        agrees(bob, channel, 2)
        housekeep(database)
    assert [message["text"] for message in bob.history(channel)] == ["kept"]
    agrees(bob, channel, 1)


def test_many_unread(room):
    ann, bob, channel = room
    for _ in range(130):
        ann.post(channel)
    state = read_state(bob, channel)
    assert state["unread_count"] == 130 and state["unread_capped"] is False


def test_marking_needs_a_message_of_ones_own_channel(room, workspace):
    ann, bob, channel = room
    other = workspace.channel(ann)
    ts = ann.post(other)
    bob.fails("not_in_channel", "channels.mark", channel=other, ts=ts)
    bob.fails("not_in_channel", "channels.markUnread", channel=other, ts=ts)
