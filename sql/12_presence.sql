-- SPDX-License-Identifier: Apache-2.0
-- Resuming event streams and sockets.

-- Whether the transaction that wrote a row is below `bound`. A row's xmin has only 32 bits: false for transactions that are more than 2^31
-- older.
CREATE FUNCTION xmin_is_below(row_xmin xid, bound xid8) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (bound::text::numeric::bigint - row_xmin::text::bigint) & 4294967295 BETWEEN 1 AND 2147483647
$$;

-- Whether a message of the channel was edited or deleted after everything below `sent` had been sent.
CREATE FUNCTION changes_since(channel text, sent xid8) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT NOT xmin_is_below(l.written, sent)
            FROM (SELECT e.xmin AS written FROM changes e WHERE e.channel_id = channel ORDER BY e.seq DESC LIMIT 1) l);
END $$;

-- The highest seq that was provably committed in every snapshot whose xmin is `bound`. A channel's events commit in the order of seq, so
-- all events before it were committed too. The row of a message that was changed since does not tell when it was posted: its first change
-- since does. PL/pgSQL, which keeps its plan: a function in SQL would be planned for each resumed stream, which takes longer than running it.
CREATE FUNCTION channel_seq_below(channel text, bound xid8) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    below bigint := greatest(
        (SELECT m.seq FROM messages m WHERE m.channel_id = channel AND xmin_is_below(m.xmin, bound) ORDER BY m.ts DESC LIMIT 1),
        (SELECT e.seq FROM changes e WHERE e.channel_id = channel AND xmin_is_below(e.xmin, bound) ORDER BY e.seq DESC LIMIT 1),
        0);
BEGIN
    IF changes_since(channel, bound) THEN
        below := greatest(below, (SELECT m.seq FROM messages m WHERE m.channel_id = channel AND m.ts = (
            SELECT max(e.message_ts) FROM changes e
            WHERE e.channel_id = channel AND e.seq > below AND xmin_is_below(e.message_xmin, bound))));
    END IF;
    RETURN below;
END $$;

-- The event after which a member's stream continues in a channel, when everything below `sent` was sent, and all changes of memberships
-- below `heard` were known. If they were a member then, the stream continues from there; otherwise from their first join since. `told` (0:
-- none) is an event up to which everything was sent and known already: then likewise from there, without looking at earlier events.
CREATE FUNCTION resume_seq(channel text, caller text, member_seq bigint, sent xid8, heard xid8, told bigint)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    after_seq bigint := CASE WHEN told > 0 THEN told ELSE channel_seq_below(channel, sent) END;
    heard_seq bigint := CASE WHEN told > 0 THEN told ELSE channel_seq_below(channel, heard) END;
    joined bigint;
    left_at bigint;
BEGIN
    IF member_seq <= heard_seq THEN
        RETURN after_seq;
    END IF;
    SELECT min(m.seq) FILTER (WHERE m.subtype <> 'channel_leave'), min(m.seq) FILTER (WHERE m.subtype = 'channel_leave')
    INTO joined, left_at FROM messages m
    WHERE m.channel_id = channel AND m.ts > message_ts_at_seq(channel, heard_seq) AND m.user_id = caller
      AND m.subtype IN ('channel_join', 'channel_open', 'channel_leave');
    IF left_at > after_seq AND left_at < coalesce(joined, left_at + 1) THEN
        RETURN after_seq;
    END IF;
    RETURN coalesce(joined - 1, member_seq - 1, after_seq);
END $$;
