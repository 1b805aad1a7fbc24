# SPDX-License-Identifier: Apache-2.0
"""Channels with frequent posts while a snapshot of Postgres is held: their heads are not in the rows of channels. All calls give the same
results as in other channels."""
import pytest

from tests.support.metrics import metric
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

POSTS = 300


def is_hot(database, channel):
    return database.execute("SELECT is_hot FROM channels WHERE id = %s", [channel]).fetchone()[0]


@pytest.fixture
def talk(environment, workspace):
    """Ann and bob in a hot channel with three messages of ann's and two of bob's."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    with environment.held_snapshot(), environment.database() as database:
        said = [ann.post(channel, "one"), bob.post(channel, "two"), ann.post(channel, "three"), bob.post(channel, "four"),
                ann.post(channel, "<!channel> five")]
        assert is_hot(database, channel)
        yield ann, bob, channel, said, database


def unread(user, channel):
    info = user.ok("channels.info", channel=channel)["channel"]
    synced = next(entry for entry in user.ok("unread.sync")["channels"] if entry["id"] == channel)
    assert (info["unread_count"], info["mention_count"]) == (synced["unread_count"], synced["mention_count"])
    return info["unread_count"], info["mention_count"]


def test_counts(talk):
    ann, bob, channel, said, database = talk
    assert (unread(ann, channel), unread(bob, channel)) == ((2, 0), (3, 1))
    bob.ok("channels.mark", channel=channel, ts=said[2])
    ann.ok("channels.mark", channel=channel, ts=said[4])
    assert (unread(ann, channel), unread(bob, channel)) == ((0, 0), (1, 1))
    assert is_hot(database, channel)
    bob.ok("channels.markAll")
    bob.post(channel, "six")
    assert (unread(ann, channel), unread(bob, channel)) == ((1, 0), (0, 0))
    bob.ok("channels.markUnread", channel=channel, ts=said[0])
    assert unread(bob, channel) == (3, 1)


# What a view of sidebars says otherwise than unread_rows, or calls usual though it is not.
SIDEBAR_DIFFERS = """
SELECT s.channel_id, s.user_id FROM {view} s FULL JOIN unread_rows u ON u.channel_id = s.channel_id AND u.user_id = s.user_id
WHERE (s.name, s.type, s.is_archived, s.strategy_in_use, s.active, s.epoch, s.ts, s.muted, s.head_seq, s.updated_ts, s.latest_ts,
       s.latest_user, s.latest_preview, s.unread, s.member_changed, s.channel_changed, s.is_open, s.mentions, s.notify)
      IS DISTINCT FROM
      (u.name, u.type, u.is_archived, u.strategy_in_use, u.active, u.epoch, u.ts, u.muted, u.head_seq, u.updated_ts, u.latest_ts,
       u.latest_user, u.latest_preview, u.unread, u.member_changed, u.channel_changed, u.is_open, u.mentions, u.notify)
   OR s.is_usual AND (u.type <> 0 OR u.strategy_in_use <> 0 OR u.epoch <> 0 OR u.latest_ts <> u.updated_ts OR u.muted OR NOT u.active
                      OR u.is_archived OR NOT u.is_open OR u.mentions <> 0 OR u.notify <> 0)
"""


@pytest.mark.parametrize("view", ["sidebar_rows", "sidebar_few_rows"])
def test_sidebars_read_the_same(talk, workspace, view):
    """They are read through views of their own: those of users in many channels, and of others."""
    ann, bob, channel, said, database = talk
    rooms = [workspace.channel(ann, bob) for _ in range(7)]
    last = {room: (ann.post(room, f"<@{bob.id}> one"), ann.post(room, "two"))[1] for room in rooms}
    ann.ok("chat.delete", channel=rooms[0], ts=last[rooms[0]])
    bob.ok("channels.markUnread", channel=rooms[1], ts=last[rooms[1]])
    bob.ok("channels.markMessages", channel=rooms[2], ts=[last[rooms[2]]])
    bob.ok("channels.setNotifications", channel=rooms[3], muted=True)
    bob.ok("channels.setNotifications", channel=rooms[4], notify="mentions")
    bob.ok("conversations.leave", channel=rooms[5])
    bob.ok("channels.mark", channel=rooms[6], ts=last[rooms[6]])
    workspace.channel(ann, bob)  # usual: nobody posts there, so it is not hot
    direct = bob.ok("conversations.open", users=ann.id)["channel"]["id"]
    ann.post(direct, "direct")
    bob.ok("conversations.close", channel=direct)
    assert is_hot(database, channel)
    assert database.execute(f"SELECT unread, mentions FROM {view} WHERE channel_id = %s AND user_id = %s",
                            [channel, bob.id]).fetchone() == unread(bob, channel)
    assert database.execute(SIDEBAR_DIFFERS.format(view=view)).fetchall() == []
    assert {row[0] for row in database.execute(f"SELECT is_usual FROM {view} WHERE user_id = %s", [bob.id])} == {True, False}


@pytest.mark.parametrize("method, arguments", [
    ("chat.update", {"ts": 0, "text": "edited"}), ("chat.delete", {"ts": 2}), ("channels.setTopic", {"topic": "news"}),
    ("channels.setStrategy", {"strategy": "counter"}), ("channels.rename", {"name": "cooled"}), ("channels.archive", {}),
    ("conversations.leave", {})])
def test_other_events(talk, method, arguments):
    """Their numbers follow those of posts, and the counts are right before and after, and when the channel is hot again."""
    ann, bob, channel, said, database = talk
    head = ann.ok("channels.events", channel=channel, after_seq=0)["events"][-1]["seq"]
    if "ts" in arguments:
        arguments = {**arguments, "ts": said[arguments["ts"]]}
    ann.ok(method, channel=channel, **arguments)
    assert not is_hot(database, channel)
    was = 3 - (method == "chat.delete")
    if method != "channels.archive":
        assert unread(bob, channel)[0] == was
    else:
        assert ann.call("chat.postMessage", channel=channel, text="late")["error"] == "is_archived"
        ann.ok("channels.unarchive", channel=channel)
    if method == "conversations.leave":
        assert ann.call("chat.postMessage", channel=channel, text="late")["error"] == "not_in_channel"
        ann.ok("conversations.join", channel=channel)
    for number in range(3):
        ann.post(channel, f"after {number}")
    assert is_hot(database, channel)
    assert unread(bob, channel)[0] == was + 3
    events = bob.ok("channels.events", channel=channel, after_seq=head)["events"]
    assert [event["seq"] for event in events] == list(range(head + 1, head + 1 + len(events)))


def test_an_edit_of_what_made_it_hot(environment, workspace):
    """Nobody has posted since."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    with environment.held_snapshot(), environment.database() as database:
        ts = ann.post(channel, "one")
        if not is_hot(database, channel):
            ts = ann.post(channel, "two")
        assert is_hot(database, channel)
        ann.ok("chat.update", channel=channel, ts=ts, text="edited")
        assert not is_hot(database, channel)


def test_refused(environment, talk, workspace):
    _, bob, channel, _, database = talk
    outsider = workspace.user("eve")
    assert outsider.call("chat.postMessage", channel=channel, text="x")["error"] == "not_in_channel"
    assert bob.ok("conversations.join", channel=channel)["warning"] == "already_in_channel"
    assert is_hot(database, channel)
    stranger = Workspace(environment.urls, environment.operator_token).user("mallory")
    assert stranger.call("chat.postMessage", channel=channel, text="x")["error"] == "channel_not_found"


def test_quiet_channels_cool(talk):
    """Counts from the hot time remain. The snapshot is still held."""
    ann, bob, channel, _, database = talk
    wait_until(lambda: not is_hot(database, channel), 60, what="the channel to cool")
    assert (unread(ann, channel), unread(bob, channel)) == ((2, 0), (3, 1))
    rows = database.execute("SELECT (SELECT count(*) FROM hot_heads WHERE channel_id = %(c)s), (SELECT count(*) FROM hot_authors WHERE"
                            " channel_id = %(c)s), (SELECT count(*) FROM hot_channels WHERE channel_id = %(c)s)", {"c": channel}).fetchone()
    assert rows == (0, 0, 0)


def test_when_the_snapshot_is_gone(environment, workspace):
    """No channel is hot any more, and posts do not look for hot ones."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    hot = "SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'hot_heads'"
    posts = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relid IN (SELECT tableoid FROM messages WHERE channel_id = %s)"
    with environment.held_snapshot():
        for number in range(3):
            ann.post(channel, f"under it {number}")
        for instance in environment.instances:
            wait_until(lambda one=instance: metric(one, "tidings_hot_channels") > 0, what="word of the hot channel")
    for instance in environment.instances:
        wait_until(lambda one=instance: metric(one, "tidings_hot_channels") == 0, what="the end of hot channels")

    with environment.database() as database:
        def counted(statement, *arguments):
            database.execute("SELECT pg_stat_clear_snapshot()")
            return database.execute(statement, arguments).fetchone()[0]

        def passed_by():
            """Whether twenty posts, once in Postgres' statistics, caused no lookup of hot heads."""
            scans, written = counted(hot), counted(posts, channel)
            wait_until(lambda: ann.post(channel, "after it") and counted(posts, channel) >= written + 20, what="the posts in statistics")
            return counted(hot) == scans

        ann.post(channel, "after it")
        wait_until(passed_by, 20, what="posts that look for no hot head")



def test_a_release_before_runs(talk):
    """It does not know of hot channels: none exist before it has announced itself, and none are created while it runs."""
    ann, bob, channel, _, database = talk
    database.execute("INSERT INTO versions_in_use (functions, library, release) VALUES ('tidings_old', 'tidings_old', '0.2.0')")
    try:
        assert not is_hot(database, channel)
        assert (unread(ann, channel), unread(bob, channel)) == ((2, 0), (3, 1))
        for number in range(3):
            ann.post(channel, f"more {number}")
        assert not is_hot(database, channel) and unread(bob, channel)[0] == 6
    finally:
        database.execute("DELETE FROM versions_in_use WHERE release = '0.2.0'")
    ann.post(channel, "again")
    assert is_hot(database, channel) and unread(bob, channel)[0] == 7


def test_posts_cost_the_same(talk):
    """Each post visits no more pages than the first, although no old row version is removed; the rows that every lookup of the channel or
    its members visits are not written."""
    ann, _, channel, _, database = talk

    def written():
        database.execute("SELECT pg_stat_clear_snapshot()")
        return database.execute("SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname IN ('channels', 'channel_members')").fetchone()[0]

    def buffers(number):
        """The buffers that a post visits within the next quarter of a second."""
        ann.post(channel, f"{number}")
        database.execute("SELECT pg_sleep(0.3)")
        plan = database.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT * FROM hot_state(%s, true, %s)", [channel, ann.id]).fetchone()[0]
        return plan[0]["Plan"]["Shared Hit Blocks"]

    before, first = written(), buffers(0)
    for number in range(POSTS):
        ann.post(channel, f"{number}")
    last = buffers(1)
    assert is_hot(database, channel)
    assert written() - before < POSTS / 10  # by other tests' upkeep
    assert last <= 2 * first + POSTS / 20  # a page of the index may split meanwhile


def test_a_note_takes_its_place_in_a_hot_channel(talk, sockets):
    """The channel stays hot, and no count changes; nor do they when the channel is an ordinary one again."""
    ann, bob, channel, said, database = talk
    socket = sockets(bob, native=True)
    before = unread(ann, channel), unread(bob, channel)
    seq = ann.ok("reactions.add", channel=channel, timestamp=said[0], name="tada")["seq"]
    assert ann.ok("chat.postMessage", channel=channel, text="six")["seq"] == seq + 1
    assert socket.expect({"type": "reaction_added", "channel": channel})["seq"] == seq
    socket.expect({"type": "message", "seq": seq + 1})
    assert is_hot(database, channel)
    assert unread(ann, channel) == before[0] and unread(bob, channel) == (before[1][0] + 1, before[1][1])
    ann.ok("chat.update", channel=channel, ts=said[0], text="edited")
    assert not is_hot(database, channel)
    assert unread(bob, channel) == (before[1][0] + 1, before[1][1])
    events = bob.ok("channels.events", channel=channel, after_seq=seq - 1)["events"]
    assert [(event["seq"], event["type"]) for event in events] == [(seq, "reaction_added"), (seq + 1, "message"), (seq + 2, "message")]
