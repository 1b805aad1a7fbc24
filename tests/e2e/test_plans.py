# SPDX-License-Identifier: Apache-2.0
"""Lookups by id use the index of the id, also with plans made while a workspace was small."""
import pytest

from tests.support.environment import Environment, running
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

ROUNDS = 20


def by_workspace(database):
    """The number of scans of each index that begins with the workspace."""
    return database.execute("SELECT s.indexrelname, s.idx_scan FROM pg_stat_user_indexes s JOIN pg_index i USING (indexrelid) "
                            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
                            "WHERE s.relname IN ('channels', 'users') AND a.attname = 'workspace_id'").fetchall()


def by_id(database):
    count, = database.execute("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'channels_pkey'").fetchone()
    return count


def calls(ann, bob, channel):
    """Methods that take an id."""
    root = ann.post(channel, "root")
    ann.post(channel, "reply", thread_ts=root)
    ann.ok("chat.update", channel=channel, ts=root, text="edited")
    for method in ("info", "members", "history"):
        bob.ok(f"channels.{method}", channel=channel)
    bob.ok("channels.events", channel=channel, after_seq=0)
    bob.ok("channels.replies", channel=channel, ts=root)
    bob.ok("channels.mark", channel=channel, ts=root)
    bob.ok("channels.markUnread", channel=channel, ts=root)
    bob.ok("threads.follow", channel=channel, thread_ts=root)
    bob.ok("threads.list")
    bob.ok("unread.sync")
    bob.ok("users.info", user=ann.id)
    bob.ok("users.getPresence", user=ann.id)
    bob.ok("users.conversations")
    ann.ok("channels.setTopic", channel=channel, topic=root)
    ann.ok("channels.kick", channel=channel, user=bob.id)
    ann.ok("channels.invite", channel=channel, users=bob.id)
    ann.ok("chat.delete", channel=channel, ts=root)


def test_by_id(environment, workspace):
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    with environment.database() as database:

        def settle():
            """Postgres publishes a connection's counts with a delay: further calls flush them."""
            wanted = by_id(database) + ROUNDS * 10

            def round_counted():
                calls(ann, bob, channel)
                return by_id(database) > wanted

            wait_until(round_counted, 60, what="counts of scans")
            return by_workspace(database)

        # What other tests left uncounted may come out between the two, but not each time.
        wait_until(lambda: settle() == settle(), 60, what="looking up by id alone")


MESSAGES = 300
READ = "SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname LIKE 'messages%'"


def test_events_of_tables_that_were_never_analysed(environment):
    """Each event's message is looked up, without reading the channel each time."""
    with environment.apart("unanalysed") as instance:
        workspace = Workspace([instance.url], environment.operator_token)
        [ann] = workspace.users(1)
        channel = workspace.channel(ann)
        for number in range(MESSAGES):
            ann.post(channel, str(number))
        before = int(environment.postgres.sql(READ, "unanalysed"))
        asked = 0

        def grown():
            """Postgres publishes a connection's counts with a delay: further calls flush them."""
            nonlocal asked
            asked += 1
            assert len(ann.ok("channels.events", channel=channel, after_seq=0, limit=MESSAGES)["events"]) == MESSAGES
            return int(environment.postgres.sql(READ, "unanalysed")) - before

        wait_until(lambda: grown() > 4 * MESSAGES, 60, 0.1, "counts of what was read")
        assert grown() < asked * MESSAGES * 10 + MESSAGES * 100, "the channel was read again and again"


ROOMS = 50
ANALYSED_EMPTY = ("ALTER TABLE channels SET (autovacuum_enabled = false)", "ALTER TABLE channel_members SET (autovacuum_enabled = false)",
                  "VACUUM ANALYZE")
ROOMS_READ = "SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname = 'channels'"


def test_channels_of_tables_that_were_empty_when_analysed(environment):
    """A user's channels are looked up, without reading all channels for each."""
    with environment.apart("rooms", sidebar_min=1000) as instance:
        for statement in ANALYSED_EMPTY:
            environment.postgres.sql(statement, "rooms")
        workspace = Workspace([instance.url], environment.operator_token)
        ann, bob = workspace.users(2)
        for room in [workspace.channel(ann, bob) for _ in range(ROOMS)]:
            ann.post(room, "unread")
        for method in ("unread.sync", "users.conversations", "rtm.start", "channels.markAll"):
            before = int(environment.postgres.sql(ROOMS_READ, "rooms"))
            asked = 0

            def read():
                """Postgres publishes a connection's counts once a second: further calls flush them."""
                nonlocal asked
                asked += 1
                bob.ok(method)
                return int(environment.postgres.sql(ROOMS_READ, "rooms")) - before

            wait_until(lambda: read() > asked * ROOMS / 2 > 30 * ROOMS, 60, 0.02, "counts of what was read")
            assert read() < asked * ROOMS * 10, f"{method} reads all channels again for each"


def test_what_a_bot_posted_is_not_gone_through_when_it_reads(environment, workspace):
    """Nobody else posted after its cursor, which never moves: nothing there is unread."""
    bot = workspace.bot()
    channel = workspace.channel(bot)
    for number in range(MESSAGES):
        bot.post(channel, str(number))
    with environment.database() as database:

        def read_meanwhile():
            read = int(environment.postgres.sql(READ))
            wanted = by_id(database) + ROUNDS * 10

            def calls_counted():
                """Postgres publishes a connection's counts with a delay: further calls flush them."""
                assert bot.unread(channel) == 0
                return by_id(database) > wanted

            wait_until(calls_counted, 60, what="counts of scans")
            return int(environment.postgres.sql(READ)) - read

        # What other tests left uncounted may come out meanwhile, but not each time.
        wait_until(lambda: read_meanwhile() < ROUNDS * MESSAGES, 60, what="a round in which not all is gone through")


def test_what_was_deleted_is_not_gone_through_by_further_deletes(environment, workspace):
    """A user clears a channel, the newest message first."""
    ann, = workspace.users(1)
    channel = workspace.channel(ann)
    root = ann.post(channel)
    ts = [ann.post(channel, "x", **args) for args in ({}, {"thread_ts": root}) for _ in range(MESSAGES)]
    with environment.database() as database:
        def count(wanted):
            """Postgres publishes a connection's counts with a delay: further calls flush them."""
            def calls_counted():
                ann.ok("channels.setNotifications", channel=channel, muted=False)
                return by_id(database) > wanted

            wait_until(calls_counted, 60, what="counts of scans")
            return int(environment.postgres.sql(READ))

        read = count(by_id(database) + ROUNDS)
        asked = by_id(database)
        for one in reversed(ts):
            ann.ok("chat.delete", channel=channel, ts=one)
        assert count(asked + 2 * MESSAGES) - read < 2 * MESSAGES * 40, "all that was deleted before, each time"


FEW, MANY = 100, 20_000  # rows that are dead, and that nobody may remove


def leave_dead_rows(database, count):
    """Leaves the dead rows of delivered events in the outbox, and of expired rows in the log of changes."""
    database.execute("INSERT INTO outbox (id, done, channels, seqs, tss, kinds, users)"
                     " SELECT 'dead' || n, true, '{}', '{}', '{}', '{}', '{}' FROM generate_series(1, %s) n", [count])
    database.execute("INSERT INTO change_log (channels) SELECT '{}' FROM generate_series(1, %s)", [count])
    number = database.execute("SELECT max(number) FROM outbox WHERE id LIKE 'dead%'").fetchone()[0]
    database.execute("DELETE FROM outbox WHERE id LIKE 'dead%'")
    database.execute("DELETE FROM change_log WHERE channels = '{}'")

    def has_moved():
        database.execute("SELECT outbox_start_move()")  # as each instance does every second
        return database.execute("SELECT number > %s FROM outbox_start", [number]).fetchone()[0]

    database.execute("INSERT INTO outbox (id, done, channels, seqs, tss, kinds, users) VALUES ('last', true, '{}', '{}', '{}', '{}', '{}')")
    try:
        wait_until(has_moved, what="the start of the outbox behind the dead rows")
    finally:
        database.execute("DELETE FROM outbox WHERE id = 'last'")


def poll_buffers(database, caller):
    """The buffers that each poll visits once the catalogs are cached, with the same plans as in an instance."""
    for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off", "enable_bitmapscan = off"):
        database.execute(f"SET {setting}")
    since = database.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text").fetchone()[0]
    polls = (("SELECT outbox_leftovers(0, 100)", []), ("SELECT * FROM outbox_depth()", []),
             ("SELECT sync_candidates(%s, %s::xid8, 5000)", [caller, since]))

    def buffers(statement, arguments):
        database.execute(statement, arguments)
        plan = database.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT json) " + statement, arguments).fetchone()[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    return [buffers(*poll) for poll in polls]


@pytest.fixture
def own_environment(tmp_path_factory, recorder):
    """An environment without rows of other tests, which would disturb the measurement."""
    yield from running(Environment(tmp_path_factory.mktemp("own"), instances=1, recorder=recorder))


def test_polls_do_not_slow_down_with_dead_rows(own_environment):
    """Polls of the outbox and of the log of changes, while a snapshot is held."""
    environment, workspace = own_environment, own_environment.workspace()
    with environment.held_snapshot(), environment.database() as database:
        leave_dead_rows(database, FEW)
        few = poll_buffers(database, workspace.admin.id)
        leave_dead_rows(database, MANY)
        many = poll_buffers(database, workspace.admin.id)
    assert all(after <= before + 10 for before, after in zip(few, many)), (few, many)


def test_many_who_are_invited_are_added_at_once(environment, workspace):
    """Posts wait for the channel's row: it is written once, and not once for each."""
    ann, *others = workspace.users(6)
    channel = workspace.channel(ann)
    with environment.database() as database:
        with database.transaction(force_rollback=True):
            database.execute("SELECT channels_invite('row', %s, %s, %s, %s, false)", [workspace.id, ann.id, channel, [o.id for o in others]])
            written = database.execute("SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'channels'").fetchone()[0]
    assert written == 1
    ann.ok("channels.invite", channel=channel, users=[other.id for other in others])
    assert ann.ok("channels.info", channel=channel)["channel"]["num_members"] == 6
    joins = ann.ok("channels.events", channel=channel, after_seq=1)["events"]
    assert [(e["seq"], e["user"], e["inviter"]) for e in joins] == [(2 + n, other.id, ann.id) for n, other in enumerate(others)]
    assert len({e["event_ts"] for e in joins}) == len(joins)
    for other in others[1:4]:
        other.ok("channels.leave", channel=channel)
    ann.ok("channels.invite", channel=channel, users=[member.id for member in (others[3], *workspace.users(4), others[1])])
    with environment.database() as database:
        numbers = database.execute("SELECT number FROM channel_members WHERE channel_id = %s AND active ORDER BY number", [channel]).fetchall()
    assert [number for number, in numbers] == list(range(9)), "those of who left are given again"
