-- SPDX-License-Identifier: Apache-2.0
-- Long-lived connections: where a stream of events goes on.

-- Whether the transaction that wrote a row (its system column xmin, 32 bits) is below `bound`, as far as can be told: of
-- one that is older by more than 2^31 transactions it says no.
CREATE FUNCTION xmin_is_below(row_xmin xid, bound xid8) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (bound::text::numeric::bigint - row_xmin::text::bigint) & 4294967295 BETWEEN 1 AND 2147483647
$$;

-- The highest seq of a channel of which a row tells that it was committed in every snapshot whose xmin is `bound`. Events of
-- a channel commit in the order of seq, so all before it were, too. (In plpgsql, which keeps its plan: a function in SQL is planned
-- anew for each stream that comes back, which takes longer than to run it.)
CREATE FUNCTION channel_seq_below(channel text, bound xid8) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(
        (SELECT m.seq FROM messages m WHERE m.channel_id = channel AND xmin_is_below(m.xmin, bound) ORDER BY m.ts DESC LIMIT 1),
        (SELECT e.seq FROM changes e WHERE e.channel_id = channel AND xmin_is_below(e.xmin, bound) ORDER BY e.seq DESC LIMIT 1),
        0);
END $$;

-- Whether a message of the channel was edited or deleted since everything below `sent` was sent.
CREATE FUNCTION changes_since(channel text, sent xid8) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT NOT xmin_is_below(l.written, sent)
            FROM (SELECT e.xmin AS written FROM changes e WHERE e.channel_id = channel ORDER BY e.seq DESC LIMIT 1) l);
END $$;

-- The event after which a member's stream goes on in a channel, when everything below `sent` was sent and everything about
-- membership below `heard` was heard: from there, if they were a member then and left later, else from their first join since.
-- When the events up to `told` were sent and heard already (0: none were), then likewise from there; this looks at no event before.
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
