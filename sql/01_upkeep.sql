-- SPDX-License-Identifier: Apache-2.0
-- Upkeep: bad rows, the log of changes, the partitions of messages, the deletion of expired rows.

-- Tells the calling instance, which logs and counts it, that a bad row was put aside so that others are not held up.
CREATE FUNCTION row_aside(what text, why text) RETURNS void LANGUAGE plpgsql STABLE AS
$$ BEGIN RAISE WARNING USING ERRCODE = 'TD003', MESSAGE = what || ': ' || why; END $$;

-- Records a change to one member's view of a channel, in the transaction that makes it. For changes without an outbox row.
CREATE FUNCTION change_note(channel text, member text) RETURNS void LANGUAGE sql VOLATILE AS
$$ INSERT INTO change_log (channels, users) VALUES (ARRAY[channel], ARRAY[member]) $$;

-- Whether events of these kinds change only the view of the user they name.
CREATE FUNCTION is_personal(kinds text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT kinds <@ '{mark,preference,thread_mark,thread_follow}' $$;

-- Deletes completed outbox rows, and moves the changes that they name to the log of changes.
CREATE FUNCTION outbox_delete(ids text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM outbox o WHERE o.id = ANY (ids) ORDER BY o.id FOR UPDATE;
    WITH gone AS (DELETE FROM outbox WHERE id = ANY (ids) RETURNING channels, kinds, users)
    INSERT INTO change_log (channels, users) SELECT g.channels, CASE WHEN is_personal(g.kinds) THEN g.users END FROM gone g;
END $$;

-- The rows of the outbox, for queries that search it. There are none below the start, but their deleted versions remain there while a
-- snapshot is held.
CREATE VIEW outbox_rows AS SELECT o.* FROM outbox o WHERE o.number >= (SELECT s.number FROM outbox_start s);

-- Advances the start. next_number was the last number given out at some moment. Once all transactions that ran at that moment have ended,
-- their rows are visible, and all further rows have higher numbers: a transaction that writes to the outbox has an id before it takes a
-- number.
CREATE FUNCTION outbox_start_move() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s outbox_start;
    given bigint := (SELECT last_value FROM outbox_numbers);
BEGIN
    SELECT * INTO s FROM outbox_start FOR UPDATE SKIP LOCKED;
    IF s.next_xid <= pg_snapshot_xmin(pg_current_snapshot()) THEN
        UPDATE outbox_start SET number = least(s.next_number, (SELECT min(o.number) FROM outbox o WHERE o.number >= s.number)),
            next_number = given, next_xid = pg_snapshot_xmax(pg_current_snapshot());
    END IF;
END $$;

-- Creates the partition of messages for the month of `at` if it is missing, in the schema of the tables and not of the functions. It is
-- created as a separate table and then attached: neither posts nor pg_dump wait for that, and it does not wait for pg_dump.
CREATE FUNCTION message_partition_make(at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first timestamptz := date_trunc('month', at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    after timestamptz := (date_trunc('month', at AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    partition text := 'messages_' || to_char(first AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    IF to_regclass(partition) IS NULL THEN
        PERFORM pg_advisory_xact_lock(7236401);
    END IF;
    IF to_regclass(partition) IS NULL THEN
        EXECUTE format('CREATE TABLE %s.%I (LIKE messages INCLUDING ALL)',
                       (SELECT c.relnamespace::regnamespace FROM pg_class c WHERE c.oid = 'messages'::regclass), partition);
        EXECUTE format('ALTER TABLE messages ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition,
                       (extract(epoch FROM first) * 1000000)::bigint, (extract(epoch FROM after) * 1000000)::bigint);
    END IF;
END $$;

-- This month and the next two.
CREATE FUNCTION message_partitions_make() RETURNS void LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
BEGIN
    FOR months IN 0..2 LOOP
        PERFORM message_partition_make(now() + make_interval(months => months));
    END LOOP;
END $$;

-- Whether this transaction may do a piece of upkeep; one at a time may. While a session holds the lock of upkeep_begin(), only its own
-- transactions may. Upkeep does not wait for the disk: a commit that is lost in a crash is repeated.
CREATE FUNCTION upkeep_try() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN pg_try_advisory_xact_lock(7236402);
END $$;

-- Keeps other instances from upkeep until upkeep_end() or the end of this session. False: another instance has the lock.
CREATE FUNCTION upkeep_begin() RETURNS boolean LANGUAGE sql VOLATILE AS $$ SELECT pg_try_advisory_lock(7236402) $$;
CREATE FUNCTION upkeep_end() RETURNS boolean LANGUAGE sql VOLATILE AS $$ SELECT pg_advisory_unlock(7236402) $$;

-- The condition that a table's expired rows meet. After a leap of the clock, keys of posts and eras are kept for longer than rows of the
-- outbox, of which there would be too many.
CREATE FUNCTION expired_condition(table_name text, key_days integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE table_name
        WHEN 'message_keys' THEN format('created < now() - make_interval(days => %s) AND (SELECT clock_hold_us()) = 0', key_days)
        WHEN 'tickets' THEN 'expires_at < now()'
        WHEN 'tokens' THEN 'kept_until < extract(epoch FROM now())'
        WHEN 'outbox' THEN 'done AND created NOT BETWEEN now() - interval ''10 minutes'' AND now() + interval ''10 minutes'' AND (SELECT clock_hold_us(600000000)) = 0'
        WHEN 'change_log' THEN 'xid < (SELECT s.xid FROM change_log_start s)'
        WHEN 'eras' THEN 'number < extract(epoch FROM now() - interval ''40 days'') * 1000000 AND number < (SELECT max(n.number) FROM eras n)'
             ' AND (SELECT clock_hold_us()) = 0'
    END
$$;

-- Keeps the last 20,000 entries of the log of changes.
CREATE FUNCTION change_log_cut() RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE change_log_start s SET xid = l.xid
    FROM (SELECT l.xid FROM change_log l ORDER BY l.xid DESC OFFSET 20000 LIMIT 1) l WHERE s.xid < l.xid
$$;

-- Deletes a table's expired rows, in pieces of about `budget_ms`. A piece walks the table from block `first`, in the order of the disk, so
-- that no index has to be maintained for it. Reactions are kept for as long as messages: their key leads to those that expired. `state`: 'elsewhere', another instance is at it; 'going', call again with `next`; 'gone', that
-- was the last piece.
CREATE FUNCTION rows_expire(table_name text, first bigint, key_days integer, budget_ms integer,
                            OUT state text, OUT next bigint, OUT rows bigint)
LANGUAGE plpgsql VOLATILE SET lock_timeout = '50ms' AS $$
DECLARE
    blocks bigint := pg_relation_size(table_name::regclass) / current_setting('block_size')::integer;
    of_blocks text := format('FROM %I r WHERE r.ctid >= $1 AND r.ctid < $2 AND %s', table_name, expired_condition(table_name, key_days));
    until timestamptz := clock_timestamp() + budget_ms * interval '1 millisecond';
    batch_rows bigint;
    has_more boolean;
BEGIN
    rows := 0;
    next := first;
    state := CASE WHEN upkeep_try() THEN 'going' ELSE 'elsewhere' END;
    IF state = 'going' AND table_name = 'reactions' THEN
        SELECT e.rows, e.has_more INTO rows, has_more FROM reactions_expire(until) e;
        state := CASE WHEN has_more THEN 'going' ELSE 'gone' END;
        next := CASE WHEN has_more THEN first + 1 END;
        RETURN;
    END IF;
    IF state = 'going' AND table_name = 'change_log' AND first = 0 THEN
        PERFORM change_log_cut();
    END IF;
    WHILE state = 'going' LOOP
        EXECUTE CASE table_name
            WHEN 'outbox' THEN format('SELECT cardinality(o.ids) FROM (SELECT ARRAY(SELECT r.id %s) AS ids) o, outbox_delete(o.ids)', of_blocks)
            ELSE format('WITH gone AS (DELETE %s RETURNING 1) SELECT count(*) FROM gone', of_blocks) END
        INTO batch_rows USING format('(%s,0)', next)::tid, format('(%s,0)', next + 32)::tid;
        rows := rows + batch_rows;
        next := next + 32;
        IF next >= blocks THEN
            state := 'gone';
            next := NULL;
        END IF;
        EXIT WHEN clock_timestamp() >= until;
    END LOOP;
END $$;

-- The number of outbox rows that are not done, at most a million, and the age of the oldest.
CREATE FUNCTION outbox_depth() RETURNS TABLE (count bigint, oldest_s bigint) LANGUAGE sql VOLATILE AS $$
    SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(o.created)), 0)::bigint
    FROM (SELECT created FROM outbox_rows WHERE NOT done LIMIT 1000000) o
$$;

-- `age_s`: the age of the oldest transaction, running or prepared, that keeps Postgres from removing old row versions. This role sees
-- sessions of other roles only with pg_read_all_stats. `held`: the oldest transaction held by a replication slot or a standby, whose time
-- is unknown; '' if there is none.
CREATE FUNCTION snapshot_oldest() RETURNS TABLE (age_s bigint, held text, hot_channels bigint) LANGUAGE sql VOLATILE AS $$
    SELECT greatest(0, (SELECT max(extract(epoch FROM clock_timestamp() - t.since)) FROM (
               SELECT a.xact_start AS since FROM pg_stat_activity a
               WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type <> 'autovacuum worker'
               AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
               UNION ALL SELECT p.prepared FROM pg_prepared_xacts p WHERE p.database = current_database()) t))::bigint,
           coalesce((SELECT h.xmin::text FROM (
               SELECT s.xmin FROM pg_replication_slots s WHERE s.xmin IS NOT NULL
               UNION ALL SELECT a.backend_xmin FROM pg_stat_activity a
               WHERE a.backend_type = 'walsender' AND a.backend_xmin IS NOT NULL) h
               ORDER BY age(h.xmin) DESC LIMIT 1), ''),
           (SELECT count(*) FROM hot_channels)
$$;
