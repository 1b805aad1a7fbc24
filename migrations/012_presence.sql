-- SPDX-License-Identifier: Apache-2.0
-- Long-lived connections: where a stream of events goes on.

-- Whether the transaction that wrote a row (its system column xmin, 32 bits) is below `bound`, as far as can be told: of
-- one that is older by more than 2^31 transactions it says no.
CREATE FUNCTION xmin_is_below(row_xmin xid, bound xid8) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (bound::text::numeric::bigint - row_xmin::text::bigint) & 4294967295 BETWEEN 1 AND 2147483647
$$;

-- The highest seq of a channel of which a row tells that it was committed in every snapshot whose xmin is `bound`. Events of
-- a channel commit in the order of seq, so all before it were, too.
CREATE FUNCTION channel_seq_below(channel text, bound xid8) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest(
        (SELECT m.seq FROM messages m WHERE m.channel_id = channel AND xmin_is_below(m.xmin, bound) ORDER BY m.ts DESC LIMIT 1),
        (SELECT e.seq FROM changes e WHERE e.channel_id = channel AND xmin_is_below(e.xmin, bound) ORDER BY e.seq DESC LIMIT 1),
        0)
$$;

-- The event after which a member's stream goes on in a channel, when everything below `sent` was sent and everything about
-- membership below `heard` was heard. Nothing of before the last join since.
CREATE FUNCTION resume_seq(channel text, caller text, member_seq bigint, is_in boolean, sent xid8, heard xid8)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    after_seq bigint := channel_seq_below(channel, sent);
BEGIN
    IF member_seq <= channel_seq_below(channel, heard) THEN
        RETURN after_seq;
    END IF;
    IF is_in THEN
        RETURN member_seq - 1;
    END IF;
    RETURN greatest(after_seq, (
        SELECT j.seq - 1 FROM messages j
        WHERE j.channel_id = channel AND j.ts > message_ts_at_seq(channel, after_seq) AND j.user_id = caller
          AND j.subtype = 'channel_join' ORDER BY j.ts DESC LIMIT 1));
END $$;
