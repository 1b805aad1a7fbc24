# SPDX-License-Identifier: Apache-2.0
"""Messages that get older than is kept."""

from psycopg.errors import LockNotAvailable

from tests.support.wait import wait_until

DAY = 86_400_000_000
AGE = 150 * DAY  # of any month: it has ended 90 days ago, and more


def housekeep(database):
    """What housekeeping does: once more, as it does, when somebody (autovacuum, perhaps) held messages for too long."""
    def is_done():
        try:
            database.execute("SELECT housekeeping(90, 7)")
        except LockNotAvailable:
            return False
        return True

    wait_until(is_done, what="housekeeping")


def make_older(database, channel, first, last, age=AGE):
    """Makes the messages of a channel from seq `first` to `last` so much older. At once with the months that they are then of:
    an instance that was just started may be about to drop old months that are empty."""
    these = "channel_id = %s AND seq BETWEEN %s AND %s"
    with database.transaction():
        database.execute(f"SELECT message_partition_make(to_timestamp((ts - %s) / 1e6)) FROM messages WHERE {these}",
                         [age, channel, first, last])
        database.execute(f"UPDATE messages SET ts = ts - %s WHERE {these}", [age, channel, first, last])


def drop_by_retention(environment, channel, seq):
    """Makes the events of a channel up to `seq` older than is kept, and does what housekeeping does."""
    with environment.database() as database:
        with database.transaction():
            database.execute("UPDATE changes e SET message_ts = e.message_ts - %s FROM messages m WHERE m.channel_id = e.channel_id"
                             " AND m.ts = e.message_ts AND e.channel_id = %s AND m.seq <= %s", [AGE, channel, seq])
            database.execute("UPDATE read_messages r SET ts = r.ts - %s FROM messages m WHERE m.channel_id = r.channel_id AND m.ts = r.ts"
                             " AND r.channel_id = %s AND m.seq <= %s", [AGE, channel, seq])
            database.execute("UPDATE channels c SET latest_ts = c.latest_ts - %s FROM messages m WHERE m.channel_id = c.id"
                             " AND m.ts = c.latest_ts AND c.id = %s AND m.seq <= %s", [AGE, channel, seq])
            database.execute("UPDATE changes SET event_ts = event_ts - %s WHERE channel_id = %s AND seq <= %s", [AGE, channel, seq])
            make_older(database, channel, 0, seq)
        housekeep(database)
        kept = database.execute("SELECT min(seq) FROM messages WHERE channel_id = %s", [channel]).fetchone()[0]
    assert kept > seq, "the old partition is gone"
