# SPDX-License-Identifier: Apache-2.0
"""Messages that get older than is kept."""


def drop_by_retention(environment, channel, seq):
    """Makes the messages of a channel up to `seq` older than is kept, and does what housekeeping does."""
    months = 5
    with environment.database() as database:
        database.execute("SELECT message_partition_make(now() - make_interval(months => %s))", [months])
        database.execute("UPDATE messages SET ts = ts - extract(epoch FROM now() - (now() - make_interval(months => %s)))"
                         "::bigint * 1000000 WHERE channel_id = %s AND seq <= %s", [months, channel, seq])
        database.execute("SELECT housekeeping(90, 7)")
        kept = database.execute("SELECT min(seq) FROM messages WHERE channel_id = %s", [channel]).fetchone()[0]
    assert kept == seq + 1, "the old partition is gone"
