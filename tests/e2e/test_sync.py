# SPDX-License-Identifier: Apache-2.0
"""unread.sync: the sidebar in one call, and what changed since."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.retention import drop_by_retention
from tests.support.wait import wait_until

NEVER = "0000000000.000000"


@pytest.fixture
def people(workspace):
    return workspace.users(2)


def sync(client, **args):
    return client.ok("unread.sync", **args)


def entry(reply, channel):
    return next((e for e in reply["channels"] if e["id"] == channel), None)


def settled(client, channel, count, **args):
    """A reply of unread.sync in which `channel` has `count` unread messages."""
    def look():
        reply = sync(client, **args)
        found = entry(reply, channel)
        return reply if found and found["unread_count"] == count else None
    return wait_until(look, what=f"unread.sync with {count} in {channel}")


def test_shape(people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob, name="general-talk")
    ts = ann.post(channel, "the newest thing")
    reply = settled(bob, channel, 1)
    assert reply["full"] is True and isinstance(reply["sync_token"], str) and reply["sync_token"]
    assert reply["mpims"] == [] and reply["ims"] == [] and reply["removed"] == []
    assert reply["threads"] == {"has_unreads": False, "unread_count": 0, "mention_count": 0}
    assert reply["totals"] == {"unread_channels": 1, "unread_count": 1, "mention_count": 0, "muted_unread_count": 0, "badge": 0}
    assert reply["response_metadata"]["next_cursor"] == ""
    found = entry(reply, channel)
    wanted = {"id": channel, "name": "general-talk", "is_private": False, "latest": ts, "updated": ts,
              "latest_user": ann.id, "latest_preview": "the newest thing", "seq": 3, "read_epoch": 0,
              "has_unreads": True, "unread_count": 1, "unread_count_display": 1, "unread_capped": False,
              "mention_count": 0, "is_muted": False, "notify": "default"}
    assert {name: found.get(name) for name in wanted} == wanted
    assert len(found["last_read"]) == 17


def test_nothing_at_all(people):
    reply = sync(people[0])
    assert reply["channels"] == [] and reply["removed"] == []
    assert reply["totals"]["unread_count"] == 0 and reply["totals"]["unread_channels"] == 0


def test_only_channels_one_is_in(people, workspace):
    ann, bob = people
    workspace.channel(ann)
    mine = workspace.channel(bob, private=True)
    assert [e["id"] for e in sync(bob)["channels"]] == [mine]
    assert entry(sync(bob), mine)["is_private"] is True


def test_order_unread_first_then_newest(people, workspace):
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(6)]
    last = {room: ann.post(room) for room in rooms}
    for room in rooms[1::2]:
        bob.ok("channels.mark", channel=room, ts=last[room])
    ann.post(rooms[0])
    settled(bob, rooms[0], 2)
    order = [e["id"] for e in sync(bob)["channels"]]
    assert order == [rooms[0], rooms[4], rooms[2], rooms[5], rooms[3], rooms[1]]


def test_joins_and_deletes_do_not_move_a_channel(people, workspace):
    ann, bob = people
    first, second = workspace.channel(ann, bob), workspace.channel(ann, bob)
    ann.post(first)
    keep = ann.post(second)
    gone = ann.post(second)
    settled(bob, second, 2)
    ann.ok("chat.delete", channel=second, ts=gone)
    workspace.user().ok("channels.join", channel=first)
    reply = settled(bob, second, 1)
    assert [e["id"] for e in reply["channels"]] == [second, first]
    found = entry(reply, second)
    assert found["updated"] == gone and found["latest"] == keep


def test_totals(people, workspace):
    ann, bob = people
    one, two, three = (workspace.channel(ann, bob) for _ in range(3))
    for room, count in ((one, 3), (two, 2)):
        for _ in range(count):
            ann.post(room)
    settled(bob, one, 3)
    totals = settled(bob, two, 2)["totals"]
    assert totals == {"unread_channels": 2, "unread_count": 5, "mention_count": 0, "muted_unread_count": 0, "badge": 0}
    bob.ok("channels.mark", channel=one, ts="9999999999.999999")
    totals = settled(bob, one, 0)["totals"]
    assert (totals["unread_channels"], totals["unread_count"]) == (1, 2)
    assert entry(sync(bob), three)["unread_count"] == 0


def test_badge(people, workspace):
    """Mentions of channels and threads; a broadcast reply, which is of both, counts once."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    root = bob.post(channel, "root")

    def badge():
        reply = sync(bob)
        return reply["totals"]["badge"], reply["totals"]["mention_count"], reply["threads"]["mention_count"]
    ann.post(channel, f"<@{bob.id}>")
    assert badge() == (1, 1, 0)
    ann.post(channel, f"<@{bob.id}>", thread_ts=root)
    assert badge() == (2, 1, 1)
    both = ann.post(channel, f"<@{bob.id}> and <!channel>", thread_ts=root, reply_broadcast=True)
    assert badge() == (3, 2, 2)
    bob.ok("channels.markMessages", channel=channel, ts=[both])
    assert badge() == (3, 1, 2), "read in the channel alone"
    assert bob.ok("channels.markAll")["totals"] == {"unread_channels": 0, "unread_count": 0, "mention_count": 0,
                                                    "muted_unread_count": 0, "badge": 2}
    assert badge() == (2, 0, 2)
    assert bob.ok("channels.markAll", threads=True)["totals"]["badge"] == 0
    assert badge() == (0, 0, 0)
    ann.post(channel, f"<@{bob.id}>", thread_ts=root, reply_broadcast=True)
    bob.ok("threads.mark", channel=channel, thread_ts=root, ts="9999999999.999999")
    assert badge() == (1, 1, 0), "read in the thread alone"


def test_badge_of_a_direct_conversation(people):
    ann, bob = people
    dm = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    root = ann.post(dm, "root")
    bob.ok("threads.follow", channel=dm, thread_ts=root)
    ann.post(dm, f"<@{bob.id}>", thread_ts=root, reply_broadcast=True)
    reply = sync(bob)
    assert (reply["totals"]["badge"], reply["totals"]["mention_count"], reply["threads"]["mention_count"]) == (2, 2, 1)


def test_the_display_count_has_a_bound(environment, extra_instance, people, workspace, sockets):
    """99+ is for clients to say: the count itself stays exact."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    with ThreadPoolExecutor(16) as pool:
        first = min(pool.map(lambda _: ann.at(environment.urls[0]).post(channel), range(103)))
    counts = ("unread_count", "unread_count_display", "unread_capped")
    found = entry(settled(bob, channel, 103), channel)
    assert [found[name] for name in counts] == [103, 100, False]
    info = bob.ok("channels.info", channel=channel)["channel"]
    assert [info[name] for name in counts] == [103, 100, False]
    assert bob.ok("channels.history", channel=channel, unreads=True)["unread_count_display"] == 100
    socket = sockets(bob)
    reply = bob.ok("channels.markUnread", channel=channel, ts=first)
    assert [reply[name] for name in counts] == [103, 100, False]
    frame = socket.expect({"type": "channel_marked"})
    assert [frame[name] for name in counts] == [103, 100, False]
    unbounded = bob.at(extra_instance(unread_display_max=0, loops=1).url)
    assert entry(sync(unbounded), channel)["unread_count_display"] == 103


def test_archived_channels_are_not_in_it(people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    token = quiet_token(bob)
    ann.ok("channels.archive", channel=channel)
    wait_until(lambda: entry(sync(bob), channel) is None, what="the archived channel to be gone")
    delta = sync(bob, since=token)
    assert delta["removed"] == [channel] and entry(delta, channel) is None
    assert sync(bob)["removed"] == []


def quiet_token(client):
    """A token with no later changes (a token given during other commits may repeat their changes)."""
    def look():
        token = sync(client)["sync_token"]
        return token if sync(client, since=token)["channels"] == [] else None
    return wait_until(look, what="a delta without channels")


def test_since_tells_only_what_changed(people, workspace):
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(4)]
    token = quiet_token(bob)
    ann.post(rooms[2])
    delta = settled(bob, rooms[2], 1, since=token)
    assert delta["full"] is False
    assert [e["id"] for e in delta["channels"]] == [rooms[2]]
    assert delta["totals"]["unread_count"] == 1, "totals are of all channels"


@pytest.mark.parametrize("change", ["mark", "markUnread", "delete", "own", "rejoin", "mute", "markAll"])
def test_since_after_each_kind_of_change(people, workspace, change):
    ann, bob = people
    channel, other = workspace.channel(ann, bob), workspace.channel(ann, bob)
    ts = ann.post(channel)
    settled(bob, channel, 1)
    token = quiet_token(bob)
    if change == "mark":
        bob.ok("channels.mark", channel=channel, ts=ts)
    elif change == "markUnread":
        bob.ok("channels.markUnread", channel=channel, ts=ts)
    elif change == "delete":
        ann.ok("chat.delete", channel=channel, ts=ts)
    elif change == "own":
        bob.post(channel)
    elif change == "mute":
        bob.ok("channels.setNotifications", channel=channel, muted=True)
    elif change == "markAll":
        bob.ok("channels.markAll")
    else:
        bob.ok("channels.leave", channel=channel)
        bob.ok("channels.join", channel=channel)
    delta = wait_until(lambda: entry(sync(bob, since=token), channel) and sync(bob, since=token))
    assert delta["full"] is False and [e["id"] for e in delta["channels"]] == [channel]
    assert entry(delta, channel)["unread_count"] == (1 if change in ("markUnread", "own", "mute") else 0)
    assert entry(delta, other) is None and delta["removed"] == []


def test_since_tells_that_retention_dropped_the_latest_message(environment, people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    post = ann.ok("chat.postMessage", channel=channel, text="long ago")
    bob.ok("channels.mark", channel=channel, ts=post["ts"])
    ann.ok("channels.setTopic", channel=channel, topic="quiet")
    settled(bob, channel, 0)
    token = quiet_token(bob)
    drop_by_retention(environment, channel, post["seq"])
    delta = sync(bob, since=token)
    assert [(e["id"], e["latest"], e["latest_preview"]) for e in delta["channels"]] == [(channel, NEVER, "")]


def test_since_tells_new_and_left_channels(people, workspace):
    ann, bob = people
    left = workspace.channel(ann, bob)
    kicked = workspace.channel(ann, bob)
    token = quiet_token(bob)
    new = workspace.channel(ann, bob)
    bob.ok("channels.leave", channel=left)
    ann.ok("channels.kick", channel=kicked, user=bob.id)
    delta = wait_until(lambda: len(sync(bob, since=token)["removed"]) == 2 and sync(bob, since=token))
    assert set(delta["removed"]) == {left, kicked}
    assert [e["id"] for e in delta["channels"]] == [new]


def test_since_misses_nothing_while_posts_are_in_flight(environment, people, workspace):
    """Commits may become visible out of order; a client that applies every delta must end with the truth."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(8)]
    posters = [ann.at(url) for url in environment.urls * 2]

    def post_everywhere(client):
        for _ in range(10):
            for room in rooms:
                client.post(room)

    threads = [threading.Thread(target=post_everywhere, args=(client,)) for client in posters]
    known, token = {}, ""
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        token = apply(known, sync(bob, **({"since": token} if token else {})))
    for thread in threads:
        thread.join()
    wait_until(lambda: caught_up(bob, known, token), what="the deltas to add up")
    assert known == {room: 40 for room in rooms}


def apply(known, reply):
    known.update({e["id"]: e["unread_count"] for e in reply["channels"]})
    return reply["sync_token"]


def caught_up(client, known, token):
    apply(known, sync(client, since=token))
    return set(known.values()) == {40}


@pytest.mark.parametrize("channels", [249, 250, 251, 2300, 9000])
def test_many_channels_come_whole_and_in_order(environment, people, workspace, channels):
    """More than are read at once; by an instance that keeps them, and after what changed meanwhile."""
    ann, bob = people
    first = workspace.channel(ann, bob)
    in_many_channels(environment, workspace, bob, channels - 1)
    for _ in range(2):
        reply = sync(bob)
        ids = [e["id"] for e in reply["channels"]]
        assert len(ids) == len(set(ids)) == channels
        assert ids[:2] != [first] and reply["totals"]["unread_channels"] == channels - 1
        assert [e["updated"] for e in reply["channels"]] == sorted((e["updated"] for e in reply["channels"]), reverse=True)
    token = reply["sync_token"]
    ann.post(first)
    delta = settled(bob, first, 1, since=token)
    assert delta["totals"]["unread_channels"] == channels
    assert sync(bob)["channels"][0]["id"] == first and len(sync(bob)["channels"]) == channels


def in_many_channels(environment, workspace, client, count):
    """Makes the user a member of `count` more channels with one unread message each, by SQL."""
    with environment.database() as database:
        database.execute(
            "INSERT INTO channels (id, workspace_id, name, creator, strategy, seq, ord, last_ts, updated_ts, latest_ts)"
            " SELECT 'C' || upper(left(md5(%(user)s), 8)) || lpad(upper(to_hex(n * 7919)), 8, '0'), %(workspace)s, 'many-' || %(user)s || n,"
            " %(user)s, 'sequence', 1, 1, %(ts)s + n, %(ts)s + n, %(ts)s + n FROM generate_series(1, %(count)s) n",
            {"user": client.id, "workspace": workspace.id, "count": count, "ts": 1_700_000_000_000_000})
        database.execute(
            "INSERT INTO channel_members (channel_id, user_id, member_seq) SELECT id, %(user)s, 0 FROM channels"
            " WHERE creator = %(user)s AND name LIKE 'many-%%'", {"user": client.id})


def test_a_kept_sidebar_is_read_anew_once_the_log_of_changes_is_cut(environment, people, workspace):
    """The log of changes goes back only so far."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    sync(bob)
    ann.post(channel)
    environment.wait_fanned_out(channel)  # to the log of changes
    with environment.database() as database:
        database.execute("UPDATE change_log_start SET xid = pg_current_xact_id()")
        database.execute("DELETE FROM change_log")
    assert entry(sync(bob), channel)["unread_count"] == 1
    ann.post(channel)
    settled(bob, channel, 2)


def test_a_mark_is_told_by_itself(environment, people, workspace):
    """Nothing else in the channel is newer than the kept sidebar."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ts = ann.post(channel)
    environment.wait_fanned_out(channel)
    settled(bob, channel, 1)
    bob.ok("channels.mark", channel=channel, ts=ts)
    settled(bob, channel, 0)


def test_a_sidebar_without_channels_takes_no_room(extra_instance, workspace, people):
    """It takes no room, and is used again; others' makes room for one another."""
    small = extra_instance(sidebar_min=0, sidebar_bytes=1000)
    nobody = workspace.user().at(small.url)
    for _ in range(3):
        assert sync(nobody)["channels"] == []
    for client in people * 2:
        channel = workspace.channel(client)
        assert channel in [e["id"] for e in sync(client.at(small.url))["channels"]]
    assert sync(nobody)["channels"] == []


def test_a_call_that_waits_for_a_failed_reading_reads_itself(environment, extra_instance, people, workspace):
    """Both are of one user; the first comes to nothing, as its statement waited too long for a lock."""
    quick = extra_instance(statement_timeout_ms=4000)
    ann, bob = people
    channel = workspace.channel(ann, bob)
    bob.at(quick.url).ok("auth.test")
    with ThreadPoolExecutor(2) as pool, environment.database() as database:
        with database.transaction():
            database.execute("LOCK TABLE channel_members IN ACCESS EXCLUSIVE MODE")
            first = pool.submit(bob.at(quick.url).call, "unread.sync")
            wait_until(lambda: readings_that_wait(environment) == 1, what="the first to wait")
            second = pool.submit(bob.at(quick.url).call, "unread.sync")
            assert first.result()["error"] == "service_unavailable"
        assert [e["id"] for e in second.result()["channels"]] == [channel]


def readings_that_wait(environment):
    with environment.database() as database:
        return database.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                " AND query LIKE '%sidebar_few_rows%'").fetchone()[0]


def test_a_closed_direct_conversation_is_removed_until_it_opens(people):
    ann, bob = people
    direct = bob.ok("conversations.open", users=ann.id)["channel"]["id"]
    token = quiet_token(bob)
    bob.ok("conversations.close", channel=direct)
    delta = sync(bob, since=token)
    assert delta["removed"] == [direct] and delta["ims"] == []
    bob.ok("conversations.open", users=ann.id)
    assert [e["id"] for e in sync(bob, since=token)["ims"]] == [direct]


def test_the_badge_counts_a_mention_in_a_thread_of_a_closed_conversation(people):
    """The reply was also sent to the conversation, which counts nothing once closed."""
    ann, bob = people
    direct = bob.ok("conversations.open", users=ann.id)["channel"]["id"]
    root = bob.post(direct, "root")
    ann.post(direct, f"<@{bob.id}> here", thread_ts=root, reply_broadcast=True)
    assert sync(bob)["totals"]["badge"] == 1
    bob.ok("conversations.close", channel=direct)
    assert sync(bob)["totals"]["badge"] == 1


def test_threads_are_in_it(people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    root = bob.post(channel, "root")
    sync(bob)
    ann.post(channel, "reply", thread_ts=root)
    wanted = {"has_unreads": True, "unread_count": 1, "mention_count": 0}
    wait_until(lambda: sync(bob)["threads"] == wanted, what="the thread to be unread")
    assert bob.ok("client.counts")["channel_badges"]["thread_unreads"] == 1
    assert sync(bob)["totals"]["unread_count"] == 0, "replies never count in the channel"


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_paging(people, workspace, limit):
    ann, bob = people
    rooms = {workspace.channel(ann, bob) for _ in range(5)}
    whole = [e["id"] for e in sync(bob)["channels"]]
    found, cursor = [], ""
    while True:
        reply = sync(bob, limit=limit, cursor=cursor)
        assert len(reply["channels"]) <= limit
        found += [e["id"] for e in reply["channels"]]
        cursor = reply["response_metadata"]["next_cursor"]
        if not cursor:
            break
    assert found == whole and set(found) == rooms


def test_the_token_of_the_last_page_covers_what_changed_since_the_first(people, workspace):
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(4)]
    for room in rooms:
        ann.post(room)
    settled(bob, rooms[-1], 1)
    first = sync(bob, limit=2)
    shown = first["channels"][0]["id"]
    ann.post(shown)
    settled(bob, shown, 2)
    last = sync(bob, limit=2, cursor=first["response_metadata"]["next_cursor"])
    assert last["response_metadata"]["next_cursor"] == ""
    delta = sync(bob, since=last["sync_token"])
    assert entry(delta, shown)["unread_count"] == 2


@pytest.mark.parametrize("args, name, error", [
    ({"limit": -1}, "limit", "invalid_limit"),
    ({"limit": "x"}, "limit", "invalid_limit"), ({"cursor": "*"}, "cursor", "invalid_cursor"),
    ({"since": "nonsense"}, "since", "invalid_arguments"), ({"since": "*" * 2000}, "since", "invalid_arguments"),
    ({"since": ["a"]}, "since", "invalid_arguments"), ({"types": "rooms"}, "types", "invalid_types"),
])
@pytest.mark.parametrize("method", ["unread.sync", "client.counts"])
def test_bad_arguments(people, method, args, name, error):
    assert name in people[0].fails(error, method, **args).messages


@pytest.mark.parametrize("days, transactions, eras, full", [
    (29, 0, 0, False), (31, 0, 0, True), (0, 10 ** 12, 0, True), (0, 0, 1, True),
])
def test_a_token_that_is_too_old_or_of_another_database_gives_all(people, workspace, days, transactions, eras, full):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    kind, xid, seconds, era = quiet_token(bob).split(".")
    reply = sync(bob, since=f"{kind}.{int(xid) + transactions}.{int(seconds) - days * 86_400}.{int(era) + eras}")
    assert reply["full"] is full and (entry(reply, channel) is not None) is full


def test_a_token_of_a_later_release(people, workspace):
    """More fields are ignored; of a later version it is as one that is too old."""
    ann, bob = people
    channel = workspace.channel(ann, bob)
    token = quiet_token(bob)
    assert sync(bob, since=f"{token}.0.17")["full"] is False
    for later in ("s2.5", token.replace("s1.", "s2."), "s17.99999999999999999999.1"):
        reply = sync(bob, since=later)
        assert reply["full"] is True and entry(reply, channel)
    for none in ("s1", "s1.5", f"{token}.", f"{token}.x", "s2", "s2.x", "s2.5.", "s0.5.5.5", "e1.5.5.5.5", token + ".7" * 600):
        assert "since" in bob.fails("invalid_arguments", "unread.sync", since=none).messages


def test_a_page_of_a_later_release(people, workspace):
    ann, bob = people
    for _ in range(2):
        workspace.channel(ann, bob)
    first = sync(bob, limit=1)
    cursor = first["response_metadata"]["next_cursor"]
    pages = [sync(bob, limit=1, cursor=text)["channels"] for text in (cursor, f"{cursor}.5.7")]
    assert pages[0] == pages[1] and len(pages[0]) == 1 and pages[0] != first["channels"]
    assert bob.fails("invalid_cursor", "unread.sync", cursor=f"{cursor}x")


def test_a_sync_token_of_someone_else_gives_nothing_away(people, workspace):
    ann, bob = people
    workspace.channel(ann, private=True)
    token = sync(ann)["sync_token"]
    reply = bob.call("unread.sync", since=token)
    if reply["ok"]:
        assert reply["channels"] == [] and reply["removed"] == []


def test_types(people, workspace):
    ann = people[0]
    public, private = workspace.channel(ann), workspace.channel(ann, private=True)
    assert {e["id"] for e in sync(ann, types="public_channel")["channels"]} == {public}
    assert {e["id"] for e in sync(ann, types="private_channel")["channels"]} == {private}
    assert sync(ann, types="im,mpim")["channels"] == []


def test_client_counts_is_the_same_with_slacks_badges(people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ann.post(channel)
    settled(bob, channel, 1)
    reply, counts = sync(bob), bob.ok("client.counts", thread_counts_by_channel=True)
    assert counts["channels"][0]["history_invalid"] == NEVER
    for name, value in entry(reply, channel).items():
        assert entry(counts, channel)[name] == value
    assert set(counts["channel_badges"]) >= {"channels", "dms", "app_dms", "thread_mentions", "thread_unreads"}
    assert counts["alerts"] == {} and counts["saved"]["uncompleted_count"] == 0
    assert counts["threads"]["has_unreads"] is False


def test_both_instances_say_the_same(environment, people, workspace):
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(3)]
    for room in rooms:
        ann.post(room)
    settled(bob, rooms[-1], 1)
    here = settled(bob, rooms[0], 1)["channels"]
    assert wait_until(lambda: sync(bob.at(environment.urls[1]))["channels"] == here)
    token = sync(bob)["sync_token"]
    assert sync(bob.at(environment.urls[1]), since=token)["full"] is False
