# SPDX-License-Identifier: Apache-2.0
"""channels.markAll: everything is read, at once and on every device."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.wait import wait_until

NOTHING = {"unread_channels": 0, "unread_count": 0, "mention_count": 0, "muted_unread_count": 0, "badge": 0}


@pytest.fixture
def people(workspace):
    return workspace.users(2)


def mark_all(client, **args):
    return client.ok("channels.markAll", **args)


@pytest.mark.parametrize("family", ["channels", "conversations"])
def test_everything_is_read(people, workspace, family):
    ann, bob = people
    rooms = [workspace.channel(ann, bob, private=n == 0) for n in range(3)]
    last = {room: ann.post(room, f"<@{bob.id}>") for room in rooms}
    ann.post(workspace.channel(ann))
    reply = bob.ok(f"{family}.markAll")
    assert reply["channels"] == 3 and reply["totals"] == NOTHING
    for room in rooms:
        info = bob.ok("channels.info", channel=room)["channel"]
        assert (info["unread_count"], info["mention_count"], info["last_read"]) == (0, 0, last[room])
    assert bob.ok("unread.sync")["totals"] == NOTHING
    assert mark_all(bob)["channels"] == 0, "nothing is left to mark"
    ann.post(rooms[0])
    assert bob.unread(rooms[0]) == 1


def test_nobody_else_is_marked(people, workspace):
    ann, bob = people
    cid = workspace.user()
    channel = workspace.channel(ann, bob, cid)
    ann.post(channel)
    mark_all(bob)
    assert cid.unread(channel) == 1 and bob.unread(channel) == 0


def test_own_posts_and_deletes(people, workspace):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ann.post(channel)
    bob.post(channel)
    gone = ann.post(channel)
    ann.ok("chat.delete", channel=channel, ts=gone)
    mark_all(bob)
    bob.post(channel)
    assert bob.unread(channel) == 0
    ann.post(channel)
    assert bob.unread(channel) == 1


def test_muted_ones_too_but_archived_ones_stay(people, workspace):
    ann, bob = people
    muted, archived = workspace.channel(ann, bob), workspace.channel(ann, bob)
    for room in (muted, archived):
        ann.post(room)
    bob.ok("channels.setNotifications", channel=muted, muted=True)
    ann.ok("channels.archive", channel=archived)
    reply = mark_all(bob)
    assert reply["channels"] == 1 and reply["totals"] == NOTHING


def test_types(people, workspace):
    ann, bob = people
    public, private = workspace.channel(ann, bob), workspace.channel(ann, bob, private=True)
    for room in (public, private):
        ann.post(room)
    assert mark_all(bob, types="im,mpim")["channels"] == 0
    reply = mark_all(bob, types="private_channel")
    assert reply["channels"] == 1 and reply["totals"]["unread_count"] == 1
    assert bob.unread(private) == 0 and bob.unread(public) == 1


@pytest.mark.parametrize("args, error, name", [({"types": "rooms"}, "invalid_types", "types"),
                                               ({"threads": "maybe"}, "invalid_arguments", "threads")])
def test_bad_arguments_mark_nothing(people, workspace, args, error, name):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ann.post(channel)
    for family in ("channels", "conversations"):
        assert name in bob.fails(error, f"{family}.markAll", **args).messages
    assert bob.unread(channel) == 1


def position_of(client):
    return client.ok("unread.sync")["position"]


@pytest.mark.parametrize("kind", ["ts", "position"])
def test_nothing_later_than_until_is_marked(people, workspace, kind):
    ann, bob = people
    behind, busy, quiet = (workspace.channel(ann, bob) for _ in range(3))
    seen = {}
    for room in (behind, busy, quiet):
        ann.post(room, f"<@{bob.id}>")
        bob.post(room, "mine")
        seen[room] = ann.post(room, "seen")
    until = max(seen.values()) if kind == "ts" else position_of(bob)
    new = [ann.post(room, f"<@{bob.id}> new") for room in (behind, busy, busy)]
    reply = mark_all(bob, until=until)
    assert reply["channels"] == 3
    assert (reply["totals"]["unread_count"], reply["totals"]["mention_count"], reply["totals"]["badge"]) == (3, 3, 3)
    for room, unread, oldest in ((behind, 1, new[0]), (busy, 2, new[1]), (quiet, 0, None)):
        info = bob.ok("channels.info", channel=room)["channel"]
        assert (info["unread_count"], info.get("oldest_unread_ts"), info["last_read"]) == (unread, oldest, seen[room])
    assert mark_all(bob, until=until)["channels"] == 0, "nothing is left to mark"
    assert mark_all(bob, until=seen[behind], types="im")["channels"] == 0
    assert mark_all(bob)["channels"] == 2 and bob.unread(busy) == 0


@pytest.mark.parametrize("kind", ["ts", "position"])
def test_threads_are_marked_up_to_until(people, workspace, kind):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    roots = [bob.post(channel) for _ in range(2)]
    seen = [ann.post(channel, "seen", thread_ts=root) for root in roots]
    until = seen[-1] if kind == "ts" else position_of(bob)
    ann.post(channel, "new", thread_ts=roots[0])
    with bob.socket(native=True) as socket:
        mark_all(bob, until=until)
        assert bob.ok("threads.list")["totals"]["unread_count"] == 3
        mark_all(bob, until=until, threads=True)
        for root, ts in zip(roots, seen):
            socket.expect({"type": "thread_marked", "subscription": {"thread_ts": root, "last_read": ts}})
    left = {thread["thread_ts"]: (thread["unread_count"], thread["last_read"]) for thread in bob.ok("threads.list")["threads"]}
    assert left == {roots[0]: (1, seen[0]), roots[1]: (0, seen[1])}


def test_until_a_position_within_a_backlog(people, workspace):
    """What events.sync has returned by then, and nothing else, is read."""
    ann, bob = people
    rooms = sorted(workspace.channel(ann, bob) for _ in range(3))
    since = position_of(bob)
    tss = {room: [ann.post(room) for _ in range(4)] for room in rooms}
    reply = bob.ok("events.sync", since=since, limit=6)
    got = {room: [frame["ts"] for frame in reply["events"] if frame["channel"] == room and frame["type"] == "message"] for room in rooms}
    assert reply["has_more"] and 0 < len(got[rooms[1]]) < 4
    mark_all(bob, until=reply["position"])
    for room in rooms:
        assert bob.unread(room) == 4 - len(got[room])
        assert not got[room] or bob.ok("channels.info", channel=room)["channel"]["last_read"] == tss[room][len(got[room]) - 1]


@pytest.mark.parametrize("changes", [["chat.update"], ["chat.delete"], ["chat.update", "chat.update", "chat.delete"]])
def test_what_was_seen_and_then_changed_is_marked(environment, people, workspace, changes):
    """Also where nothing else was seen, and in a thread; something new that was changed is not."""
    ann, bob = people
    busy, single = workspace.channel(ann, bob), workspace.channel(ann, bob)
    root = bob.post(busy)
    reply = ann.post(busy, "seen", thread_ts=root)
    seen = {room: [ann.post(room, "seen") for _ in range(count)][-1] for room, count in ((busy, 3), (single, 1))}
    until = position_of(bob)
    new = {room: ann.post(room, "new") for room in seen}
    for room, ts in [*seen.items(), *new.items(), (busy, reply)]:
        for number, method in enumerate(changes):
            ann.at(environment.urls[number % 2]).ok(method, channel=room, ts=ts, **({"text": "edited"} if method == "chat.update" else {}))
    last = {room: ann.post(room, "last") for room in seen}
    mark_all(bob, until=until, threads=True)
    new_ones = 1 if changes[-1] == "chat.update" else 0
    for room in seen:
        info = bob.ok("channels.info", channel=room)["channel"]
        assert (info["last_read"], info["unread_count"]) == (seen[room], new_ones + 1)
    assert bob.ok("threads.list")["totals"]["unread_count"] == 0
    mark_all(bob)
    assert [bob.ok("channels.info", channel=room)["channel"]["last_read"] for room in last] == list(last.values())


def test_posts_meanwhile_are_not_marked(people, workspace):
    """Under load, whatever is in flight when the position is taken: what came with it is read, what came later is not."""
    ann, bob = people
    room = workspace.channel(ann, bob)
    with ThreadPoolExecutor(4) as pool:
        posting = [pool.submit(lambda: [ann.at(ann.url).post(room) for _ in range(40)]) for _ in range(4)]
        for _ in range(10):
            reply = bob.ok("unread.sync")
            latest = next(entry["latest"] for entry in reply["channels"] if entry["id"] == room)
            mark_all(bob, until=reply["position"])
            assert bob.ok("channels.info", channel=room)["channel"]["last_read"] <= latest
        for done in posting:
            done.result()
    mark_all(bob, until=position_of(bob))
    assert bob.unread(room) == 0


@pytest.mark.parametrize("until, error", [("yesterday", "invalid_timestamp"), ("1717200000", "invalid_timestamp"), ("e1.x", "invalid_position"),
                                          ("e1.0.0.0.0", "invalid_position"), ("e1.5.5.5.0", "invalid_position"),
                                          (None, "invalid_position")])
def test_a_bad_until_marks_nothing(people, workspace, until, error):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    ann.post(channel)
    for family in ("channels", "conversations"):
        assert "until" in bob.fails(error, f"{family}.markAll", until=until or position_of(ann)).messages
    assert bob.unread(channel) == 1


@pytest.mark.parametrize("threads", [False, True])
def test_threads_when_asked_for(people, workspace, threads):
    ann, bob = people
    channel = workspace.channel(ann, bob)
    root = bob.post(channel)
    ann.post(channel, thread_ts=root)
    with bob.socket(native=True) as socket:
        mark_all(bob, threads=threads)
        assert bob.ok("unread.sync")["threads"]["unread_count"] == (0 if threads else 1)
        if threads:
            socket.expect({"type": "thread_marked", "channel": channel, "thread_ts": root, "unread_count": 0})


def test_every_device_is_told_of_each_channel(environment, people, workspace):
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(3)]
    last = {room: ann.post(room) for room in rooms}
    quiet = workspace.channel(ann, bob)
    with bob.socket() as here, bob.at(environment.urls[1]).socket() as there:
        mark_all(bob)
        for socket in (here, there):
            for room in rooms:
                socket.expect({"type": "channel_marked", "channel": room, "unread_count": 0, "last_read": last[room]})
    assert not [frame for frame in here.frames if frame.get("channel") == quiet and frame["type"] == "channel_marked"]


def test_more_channels_than_one_outbox_row_tells_of(environment, people, workspace):
    ann, bob = people
    with environment.database() as database:
        database.execute(
            "INSERT INTO channels (id, workspace_id, name, creator, strategy, seq, ord, last_ts, updated_ts, latest_ts)"
            " SELECT 'C' || upper(left(md5(%(user)s), 8)) || lpad(n::text, 6, '0'), %(workspace)s, 'lots-' || %(user)s || n, %(user)s, 'sequence', 1, 1,"
            " %(ts)s + n, %(ts)s + n, %(ts)s + n FROM generate_series(1, 1200) n",
            {"user": bob.id, "workspace": workspace.id, "ts": 1_790_000_000_000_000})
        database.execute(
            "INSERT INTO messages (channel_id, ts, seq, ord, user_id, counted, body) SELECT id, (extract(epoch FROM now()) * 1000000)::bigint,"
            " 1, 1, %(ann)s, true, 'x' FROM channels WHERE creator = %(user)s AND name LIKE 'lots-%%'", {"user": bob.id, "ann": ann.id})
        database.execute(
            "INSERT INTO channel_members (channel_id, user_id, member_seq) SELECT id, %(user)s, 0 FROM channels"
            " WHERE creator = %(user)s AND name LIKE 'lots-%%'", {"user": bob.id})
    with bob.socket() as socket:
        def told():
            return len({frame["channel"] for frame in socket.matching({"type": "channel_marked"})})

        reply = mark_all(bob)
        assert reply["channels"] == 1200 and reply["totals"] == NOTHING
        wait_until(lambda: told() == 1200, what="a frame for each channel")


def test_many_threads(environment, people, workspace):
    ann, bob = people
    channel, count = workspace.channel(ann, bob), 4200
    with environment.database() as database:
        values = {"channel": channel, "ann": ann.id, "bob": bob.id, "count": count, "ts": 1_790_000_000_000_000}
        database.execute("INSERT INTO threads (channel_id, ts, user_id, reply_count, latest_reply, last_ts)"
                         " SELECT %(channel)s, %(ts)s + n, %(ann)s, 1, %(ts)s + n + 1, %(ts)s + n + 1"
                         " FROM generate_series(1, %(count)s) n", values)
        database.execute("INSERT INTO thread_members (channel_id, thread_ts, user_id, following)"
                         " SELECT channel_id, ts, %(bob)s, true FROM threads WHERE channel_id = %(channel)s", values)
    with bob.socket(native=True) as socket:
        mark_all(bob, threads=True)
        wait_until(lambda: len({frame["thread_ts"] for frame in socket.matching({"type": "thread_marked"})}) == count,
                   timeout=120, what="a frame for each thread")


def test_posts_and_marks_meanwhile(people, workspace):
    """Cursors never move back, and later posts count: each channel ends with the number of messages after its cursor."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(4)]

    def post_all(_):
        return [(room, ann.post(room)) for room in rooms]

    with ThreadPoolExecutor(6) as pool:
        posting = [pool.submit(post_all, n) for n in range(10)]
        marking = [pool.submit(mark_all, bob) for _ in range(8)]
        single = [pool.submit(bob.ok, "channels.mark", channel=room, ts="9999999999.999999") for room in rooms for _ in range(3)]
        for future in marking + single:
            future.result()
        posts = [post for future in posting for post in future.result()]
    for room in rooms:
        info = bob.ok("channels.info", channel=room)["channel"]
        assert info["unread_count"] == sum(channel == room and ts > info["last_read"] for channel, ts in posts)
    assert mark_all(bob)["totals"] == NOTHING


@pytest.mark.parametrize("change", [
    "UPDATE channel_members SET muted = true WHERE channel_id = %(channel)s AND user_id = %(user)s",
    "SELECT channels_set_notifications('O' || gen_random_uuid(), %(workspace)s, %(user)s, %(channel)s, true, NULL)",
    "SELECT post_one('O' || gen_random_uuid(), %(workspace)s, %(channel)s, %(user)s, '', 'own', NULL, NULL, NULL, NULL, 2)"],
    ids=["row", "muted", "own post"])
def test_a_row_that_somebody_changes_meanwhile(environment, people, workspace, change):
    """When its lock is released the row has moved in the table. It is marked all the same, up to its current head."""
    ann, bob = people
    rooms = [workspace.channel(ann, bob) for _ in range(3)]
    for room in rooms:
        ann.post(room)
    with environment.database() as marking, environment.database() as changing, ThreadPoolExecutor(1) as pool:
        pid = marking.info.backend_pid
        with changing.transaction():
            changing.execute(change, {"workspace": workspace.id, "channel": rooms[1], "user": bob.id})
            marked = pool.submit(lambda: marking.execute("SELECT changed FROM mark_all('O' || gen_random_uuid(), %s, %s, 15, false)",
                                                         (workspace.id, bob.id)).fetchone())
            wait_until(lambda: changing.execute("SELECT count(*) FROM pg_locks WHERE pid = %s AND NOT granted", (pid,)).fetchone() == (1,),
                       what="the lock that is waited for")
        assert marked.result() == (3,)
    assert [bob.unread(room) for room in rooms] == [0, 0, 0]
    for room in rooms:
        ann.post(room)
    assert [bob.unread(room) for room in rooms] == [1, 1, 1]


@pytest.mark.parametrize("last", ["chat.update", "chat.delete", "reply", "topic"])
def test_where_the_last_event_is_no_message_that_counts(people, workspace, last):
    ann, bob = people
    room = workspace.channel(ann, bob)
    first, second = ann.post(room), ann.post(room)
    if last == "reply":
        second = ann.post(room, thread_ts=first)
    elif last == "topic":
        ann.ok("channels.setTopic", channel=room, topic="new")
        second = ann.ok("channels.history", channel=room)["messages"][0]["ts"]
    else:
        ann.ok(last, channel=room, ts=second, **({"text": "edited"} if last == "chat.update" else {}))
    assert mark_all(bob)["channels"] == 1
    info = bob.ok("channels.info", channel=room)["channel"]
    assert (info["unread_count"], info["last_read"]) == (0, second)
    assert mark_all(bob)["channels"] == 0
    ann.post(room)
    assert bob.unread(room) == 1
