# SPDX-License-Identifier: Apache-2.0
"""Notes of any name, written as those of reactions are."""
import json
import secrets

# As channel_advance_hot() takes it: from the head of a hot channel where there is one, with the channel's row locked first.
TAKE_SEQ = """
    WITH c AS (SELECT id, is_hot FROM channels WHERE id = %(channel)s FOR NO KEY UPDATE),
    hot AS (UPDATE hot_heads h SET seq = h.seq + 1, last_ts = greatest(clock_us(), h.last_ts + 1), changed = pg_current_xact_id()
            FROM c WHERE c.is_hot AND h.channel_id = c.id RETURNING h.seq, h.last_ts),
    plain AS (UPDATE channels k SET seq = k.seq + 1, last_ts = greatest(clock_us(), k.last_ts + 1), changed = pg_current_xact_id()
              FROM c WHERE NOT c.is_hot AND k.id = c.id RETURNING k.seq, k.last_ts)
    SELECT * FROM hot UNION ALL SELECT * FROM plain"""


def note(environment, channel, message_ts, user, name="reaction_added", data=None):
    """Writes a note; returns its seq. Its outbox row looks like one that a dead instance left behind, so it is relayed soon."""
    at = int(message_ts.replace(".", ""))
    with environment.database() as database, database.transaction():
        seq, ts = database.execute(TAKE_SEQ, {"channel": channel}).fetchone()
        if data is None:
            item = {"type": "message", "channel": channel, "ts": message_ts}
            data = json.dumps({"user": user, "reaction": "thumbsup", "item": item})
        database.execute("INSERT INTO changes (channel_id, seq, kind, message_ts, user_id, event_ts, name, data)"
                         " VALUES (%s, %s, 'note', %s, %s, %s, %s, %s)", [channel, seq, at, user, ts, name, data])
        database.execute("INSERT INTO outbox (id, created, channels, seqs, tss, kinds, users)"
                         " VALUES (%s, now() - interval '1 hour', %s, %s, %s, '{note}', %s)",
                         [f"note-{secrets.token_hex(8)}", [channel], [seq], [at], [user]])
    return seq
