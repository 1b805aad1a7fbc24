-- SPDX-License-Identifier: Apache-2.0
-- Upkeep: what is told of changes, partitions of messages, what expires.

-- Tells, in the transaction that changes it, of what one member sees of a channel and no outbox row tells of.
CREATE FUNCTION change_note(channel text, member text) RETURNS void LANGUAGE sql VOLATILE AS
$$ INSERT INTO change_log (channels, users) VALUES (ARRAY[channel], ARRAY[member]) $$;

-- Whether events of these kinds change what single members see, each of them its user.
CREATE FUNCTION is_personal(kinds text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT kinds <@ '{mark,preference,thread_mark,thread_follow}' $$;

-- Outbox rows of which all have heard go.
CREATE FUNCTION outbox_delete(ids text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH gone AS (DELETE FROM outbox WHERE id = ANY (ids) RETURNING channels, kinds, users)
    INSERT INTO change_log (channels, users) SELECT g.channels, CASE WHEN is_personal(g.kinds) THEN g.users END FROM gone g;
END $$;

-- The partition of messages for the month of `at`, made when it is missing: beside the tables, not among the functions.
CREATE FUNCTION message_partition_make(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first timestamptz := date_trunc('month', at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    after timestamptz := (date_trunc('month', at AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    partition text := 'messages_' || to_char(first AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    IF to_regclass(partition) IS NULL THEN
        PERFORM pg_advisory_xact_lock(7236401);
        EXECUTE format('CREATE TABLE IF NOT EXISTS %s.%I PARTITION OF messages FOR VALUES FROM (%s) TO (%s)',
                       (SELECT c.relnamespace::regnamespace FROM pg_class c WHERE c.oid = 'messages'::regclass), partition,
                       (extract(epoch FROM first) * 1000000)::bigint, (extract(epoch FROM after) * 1000000)::bigint);
    END IF;
END $$;

-- For this and the next two months.
CREATE FUNCTION message_partitions_make() RETURNS void LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
BEGIN
    FOR months IN 0..2 LOOP
        PERFORM message_partition_make(now() + make_interval(months => months));
    END LOOP;
END $$;

-- Fails when somebody holds messages for long, as pg_dump does. Who waits for the lock under which partitions come and go makes
-- everybody wait who comes after, so it is not waited for long, and tried before any work: this takes it and gives it back.
CREATE FUNCTION messages_lock_try() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    LOCK TABLE messages IN ACCESS EXCLUSIVE MODE;
    RAISE EXCEPTION USING ERRCODE = 'TD002';
EXCEPTION WHEN SQLSTATE 'TD002' THEN
    NULL; -- what this block locked is free again
END $$;

-- Drops a partition of messages. Who has not read what goes with it has read it now, as far as counts are concerned: the cursor
-- keeps its ts, and takes the ord and the own posts of the channel's last message that goes.
CREATE FUNCTION messages_expire(partition text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    EXECUTE format('CREATE TEMP TABLE expired ON COMMIT DROP AS SELECT channel_id, max(ts) AS ts, max(ord) AS ord FROM %I GROUP BY 1', partition);
    EXECUTE format('CREATE TEMP TABLE expired_own ON COMMIT DROP AS SELECT channel_id, user_id, max(author_posts) AS posts FROM %I
                    WHERE counted GROUP BY 1, 2', partition);
    -- What zset and counter keep has what goes, and a cursor's ts, which stays, does not tell. Channels are locked first, as by all.
    UPDATE channels c SET generation = c.generation + (c.strategy_in_use IN (1, 2))::integer,
        latest_ts = CASE WHEN c.latest_ts > k.ts THEN c.latest_ts ELSE 0 END,
        latest_user = CASE WHEN c.latest_ts > k.ts THEN c.latest_user ELSE '' END,
        latest_preview = CASE WHEN c.latest_ts > k.ts THEN c.latest_preview ELSE '' END,
        changed = pg_current_xact_id()
    FROM (SELECT l.id, e.ts FROM channels l JOIN expired e ON e.channel_id = l.id ORDER BY l.id FOR NO KEY UPDATE OF l) k
    WHERE c.id = k.id;
    UPDATE channel_members m SET ord = e.ord, changed = pg_current_xact_id(),
        own = coalesce((SELECT o.posts FROM expired_own o WHERE o.channel_id = m.channel_id AND o.user_id = m.user_id), m.own)
    FROM expired e WHERE m.channel_id = e.channel_id AND m.ts < e.ts AND m.ord < e.ord;
    WITH gone AS (
        DELETE FROM read_messages r USING expired e WHERE r.channel_id = e.channel_id AND r.ts <= e.ts RETURNING r.channel_id, r.user_id
    )
    UPDATE channel_members m SET singles = m.singles - g.count
    FROM (SELECT channel_id, user_id, count(*) FROM gone GROUP BY 1, 2) g
    WHERE m.channel_id = g.channel_id AND m.user_id = g.user_id;
    EXECUTE format('DROP TABLE IF EXISTS %I', partition);
    DROP TABLE expired, expired_own;
END $$;

-- What housekeeping calls: partitions, none older than `keep_days`; old keys and rows go.
CREATE FUNCTION housekeeping(keep_days integer, key_days integer) RETURNS void LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
DECLARE
    partition text;
    kept_from bigint;
BEGIN
    PERFORM message_partitions_make();
    FOR partition IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'messages'::regclass
          AND to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' < now() - make_interval(days => keep_days)
        ORDER BY c.relname -- oldest first: behind a later month's ord, own posts of an earlier one would not become read
    LOOP
        PERFORM messages_lock_try();
        PERFORM messages_expire(partition);
        kept_from := extract(epoch FROM (to_date(right(partition, 7), 'YYYY_MM') + interval '1 month') AT TIME ZONE 'UTC') * 1000000;
        DELETE FROM changes h WHERE h.event_ts < kept_from;
        DELETE FROM mentions m WHERE m.ts < kept_from;
        DELETE FROM thread_members m WHERE m.thread_ts < kept_from;
        DELETE FROM threads t WHERE t.ts < kept_from;
        UPDATE change_log_start SET xid = pg_current_xact_id(); -- counts changed, and nothing tells whose
    END LOOP;
    DELETE FROM message_keys WHERE created < now() - make_interval(days => key_days);
    DELETE FROM tickets WHERE expires_at < now();
    DELETE FROM eras e WHERE e.number < extract(epoch FROM now() - interval '40 days') * 1000000
                         AND e.number < (SELECT max(n.number) FROM eras n);
    PERFORM outbox_delete(ARRAY(SELECT id FROM outbox WHERE done AND created < now() - interval '10 minutes'));
    UPDATE change_log_start s SET xid = l.xid
    FROM (SELECT l.xid FROM change_log l ORDER BY l.xid DESC OFFSET 20000 LIMIT 1) l WHERE s.xid < l.xid;
    DELETE FROM change_log l USING change_log_start s WHERE l.xid < s.xid;
END $$;
