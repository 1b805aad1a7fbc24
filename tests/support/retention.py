# SPDX-License-Identifier: Apache-2.0
"""Messages that get older than is kept."""

from psycopg.errors import LockNotAvailable

from tests.support.wait import wait_until

MONTHS = 5
AGE = "extract(epoch FROM now() - (now() - make_interval(months => %s)))::bigint * 1000000"


def housekeep(database):
    """What housekeeping does: once more, as it does, when somebody (autovacuum, perhaps) held messages for too long."""
    def is_done():
        try:
            database.execute("SELECT housekeeping(90, 7)")
        except LockNotAvailable:
            return False
        return True

    wait_until(is_done, what="housekeeping")


def make_older(database, channel, seq, months):
    """Makes a message of a channel so much older."""
    database.execute("SELECT message_partition_make(now() - make_interval(months => %s))", [months])
    database.execute(f"UPDATE messages SET ts = ts - {AGE} WHERE channel_id = %s AND seq = %s", [months, channel, seq])


def drop_by_retention(environment, channel, seq):
    """Makes the events of a channel up to `seq` older than is kept, and does what housekeeping does."""
    with environment.database() as database:
        age = database.execute(f"SELECT {AGE}", [MONTHS]).fetchone()[0]
        database.execute("SELECT message_partition_make(now() - make_interval(months => %s))", [MONTHS])
        database.execute("UPDATE changes e SET message_ts = e.message_ts - %s FROM messages m WHERE m.channel_id = e.channel_id"
                         " AND m.ts = e.message_ts AND e.channel_id = %s AND m.seq <= %s", [age, channel, seq])
        database.execute("UPDATE read_messages r SET ts = r.ts - %s FROM messages m WHERE m.channel_id = r.channel_id AND m.ts = r.ts"
                         " AND r.channel_id = %s AND m.seq <= %s", [age, channel, seq])
        database.execute("UPDATE channels c SET latest_ts = c.latest_ts - %s FROM messages m WHERE m.channel_id = c.id AND m.ts = c.latest_ts"
                         " AND c.id = %s AND m.seq <= %s", [age, channel, seq])
        for table, column in (("changes", "event_ts"), ("messages", "ts")):
            database.execute(f"UPDATE {table} SET {column} = {column} - %s WHERE channel_id = %s AND seq <= %s", [age, channel, seq])
        housekeep(database)
        kept = database.execute("SELECT min(seq) FROM messages WHERE channel_id = %s", [channel]).fetchone()[0]
    assert kept > seq, "the old partition is gone"
