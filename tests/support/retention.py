# SPDX-License-Identifier: Apache-2.0
"""Messages that get older than is kept."""

from contextlib import contextmanager

from psycopg.errors import DeadlockDetected, LockNotAvailable

from tests.support.wait import wait_until

DAY = 86_400_000_000
AGE = 150 * DAY  # of any month: it has ended 90 days ago, and more
TABLES = ("message_keys", "tickets", "outbox", "change_log", "eras", "reactions")


@contextmanager
def upkeep(environment):
    """A connection that keeps all instances from upkeep as long as it is open."""
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT upkeep_begin()").fetchone()[0], what="the right to upkeep")
        yield database


def month_piece(database, days=90, budget_ms=40):
    """One piece of the work on the oldest expired month: the result of month_expire(), or None if it must be repeated because another
    session (such as autovacuum) holds a lock, or another instance is working on it."""
    try:
        piece = database.execute("SELECT state, step, piece_rows FROM month_expire(%s, %s, true)", [days, budget_ms]).fetchone()
    except (LockNotAvailable, DeadlockDetected):
        return None
    return None if piece[0] == "elsewhere" else piece


def month_pieces(database, budget_ms=40):
    """Drops all months that are not kept: gives the step of each piece that was done."""
    while True:
        state, step, _ = wait_until(lambda: month_piece(database, budget_ms=budget_ms), interval=0.02, what="a piece of upkeep")
        if state == "none":
            return
        yield step


def rows_piece(database, table, first):
    state, *rest = database.execute("SELECT state, next FROM rows_expire(%s, %s, 7, 40)", [table, first]).fetchone()
    return None if state == "elsewhere" else (state, *rest)


def rows_delete(database):
    for table in TABLES:
        state, first = "going", 0
        while state == "going":
            state, first = wait_until(lambda: rows_piece(database, table, first), what="a piece of upkeep")


def housekeep(database):
    """Runs housekeeping on messages and keys that have expired."""
    rows_delete(database)
    for _ in month_pieces(database):
        pass


def make_older(database, channel, first, last, age=AGE):
    """Makes the messages of a channel from seq `first` to `last` so much older. At once with the months that they are then of:
    an instance that was just started may be about to drop old months that are empty."""
    these = "channel_id = %s AND seq BETWEEN %s AND %s"
    with database.transaction():
        database.execute(f"SELECT message_partition_make(to_timestamp((ts - %s) / 1e6)) FROM messages WHERE {these}",
                         [age, channel, first, last])
        database.execute(f"UPDATE messages SET ts = ts - %s WHERE {these}", [age, channel, first, last])


def make_events_older(database, channel, seq, unread_by=None):
    """Makes all events of a channel up to `seq` older than is kept; one member has read nothing since before them."""
    with database.transaction():
        database.execute("SELECT channel_cool(%s)", [channel])
        if unread_by:
            database.execute("UPDATE channel_members SET ts = 0 WHERE channel_id = %s AND user_id = %s", [channel, unread_by.id])
        database.execute("UPDATE changes e SET message_ts = e.message_ts - %s FROM messages m WHERE m.channel_id = e.channel_id"
                         " AND m.ts = e.message_ts AND e.channel_id = %s AND m.seq <= %s", [AGE, channel, seq])
        database.execute("UPDATE read_messages r SET ts = r.ts - %s FROM messages m WHERE m.channel_id = r.channel_id AND m.ts = r.ts"
                         " AND r.channel_id = %s AND m.seq <= %s", [AGE, channel, seq])
        database.execute("UPDATE channels c SET latest_ts = c.latest_ts - %s FROM messages m WHERE m.channel_id = c.id"
                         " AND m.ts = c.latest_ts AND c.id = %s AND m.seq <= %s", [AGE, channel, seq])
        for table in ("reactions", "reaction_counts", "pins"):
            database.execute(f"UPDATE {table} r SET ts = r.ts - %s FROM messages m WHERE m.channel_id = r.channel_id AND m.ts = r.ts"
                             " AND r.channel_id = %s AND m.seq <= %s", [AGE, channel, seq])
        database.execute("UPDATE changes SET event_ts = event_ts - %s WHERE channel_id = %s AND seq <= %s", [AGE, channel, seq])
        make_older(database, channel, 0, seq)


def forget_copies(environment):
    """Redis still has the messages with their original age: empties it and waits for the rebuild."""
    environment.redis.cli("FLUSHALL")
    wait_until(lambda: environment.redis.cli("EXISTS", "unread-built").strip() == "1", what="Redis built")


def drop_by_retention(environment, channel, seq):
    """Makes the events of a channel up to `seq` older than is kept, and does what housekeeping does."""
    with environment.database() as database:
        make_events_older(database, channel, seq)
        housekeep(database)
        kept = database.execute("SELECT min(seq) FROM messages WHERE channel_id = %s", [channel]).fetchone()[0]
    assert kept > seq, "the old partition is gone"
