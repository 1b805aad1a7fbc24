-- SPDX-License-Identifier: Apache-2.0
-- Retention: a month of messages is dropped in pieces. Each call of month_expire() is one short transaction, which records its progress in
-- month_expiring; any instance can continue. The reasons for the order of the steps: docs/decisions/2026-11-23-retention-in-pieces.md.

-- After `detach` nobody sees the month's messages. The steps before it are then repeated for rows added meanwhile, by replies in the
-- month's threads and by instances of 0.2.0.
CREATE FUNCTION month_steps() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT '{calm,read,move,heads,thread_members,threads,mentions,changes,detach,drop,move,heads,thread_members,threads,mentions,end}'::text[]
$$;

-- The ts from which messages can be unread, or `wanted` if that is later. Messages that are about to be dropped count as read.
CREATE FUNCTION unread_from(wanted bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(wanted, (SELECT e.kept_from FROM month_expiring e));
END $$;

-- The oldest partition with only messages older than `keep_days`, and the ts at which it ends.
CREATE FUNCTION month_oldest(keep_days integer, OUT month text, OUT kept_from bigint) LANGUAGE sql STABLE AS $$
    SELECT p.relname, (extract(epoch FROM p.ends AT TIME ZONE 'UTC') * 1000000)::bigint
    FROM (SELECT c.relname::text, to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' AS ends
          FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
          WHERE i.inhparent = 'messages'::regclass AND c.relname ~ '^messages_\d{4}_(0[1-9]|1[0-2])$') p
    WHERE p.ends < now() - make_interval(days => keep_days)
    ORDER BY p.relname LIMIT 1 -- oldest first: a cursor moved to the end of a later month would be skipped, with the own posts before it
$$;

-- The ts at which the oldest partition begins.
CREATE FUNCTION month_first() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (extract(epoch FROM to_date(right(min(c.relname::text), 7), 'YYYY_MM')::timestamp AT TIME ZONE 'UTC') * 1000000)::bigint
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'messages'::regclass AND c.relname ~ '^messages_\d{4}_(0[1-9]|1[0-2])$'
$$;

-- A batch of `read`: collects what the other steps need.
CREATE FUNCTION month_read(INOUT m month_expiring, OUT rows bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last record;
BEGIN
    IF to_regclass(m.month) IS NULL THEN -- an instance of 0.2.0 has dropped it
        m.last_channel := NULL;
        RETURN;
    END IF;
    EXECUTE format('
        WITH page AS MATERIALIZED (
            SELECT p.channel_id, p.ts, p.seq, p.ord, p.user_id, p.author_posts, p.counted FROM %I p
            WHERE (p.channel_id, p.ts) > ($1, $2) ORDER BY p.channel_id, p.ts LIMIT 3000
        ), channels AS (
            INSERT INTO month_channels (channel_id, ts, seq, ord)
            SELECT DISTINCT ON (p.channel_id) p.channel_id, p.ts, p.seq, p.ord FROM page p ORDER BY p.channel_id, p.ts DESC
            ON CONFLICT (channel_id) DO UPDATE SET ts = excluded.ts, seq = excluded.seq, ord = excluded.ord
        ), authors AS (
            INSERT INTO month_authors AS a (channel_id, user_id, posts)
            SELECT p.channel_id, p.user_id, max(p.author_posts) FROM page p WHERE p.counted GROUP BY 1, 2
            ON CONFLICT (channel_id, user_id) DO UPDATE SET posts = greatest(a.posts, excluded.posts)
        )
        SELECT p.channel_id, p.ts, (SELECT count(*) FROM page) AS rows FROM page p ORDER BY p.channel_id DESC, p.ts DESC LIMIT 1', m.month)
    INTO last USING m.last_channel, m.last_number;
    m.last_channel := last.channel_id;
    m.last_number := last.ts;
    rows := last.rows;
END $$;

-- A batch of `move`: moves members' cursors in one channel from within or before the month to its end, as a mark would. The work grows with
-- the number of singles, so a batch takes fewer members where there are many.
CREATE FUNCTION month_move(INOUT m month_expiring, OUT rows bigint, OUT moved boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e month_channels;
    last text;
    behind bigint;
    with_singles text[];
BEGIN
    SELECT max(p.user_id), count(*) INTO last, rows
    FROM (SELECT c.user_id, c.singles, sum(1 + c.singles::bigint) OVER (ORDER BY c.user_id) - c.singles AS work
          FROM (SELECT i.user_id, i.singles FROM channel_members i WHERE i.channel_id = m.last_channel AND i.user_id > m.last_user
                ORDER BY i.user_id LIMIT 500) c) p
    WHERE p.work <= 500;
    IF rows = 0 THEN
        m.last_channel := (SELECT k.channel_id FROM month_channels k WHERE k.channel_id > m.last_channel ORDER BY k.channel_id LIMIT 1);
        m.last_user := '';
        RETURN;
    END IF;
    SELECT * INTO e FROM month_channels k WHERE k.channel_id = m.last_channel;
    SELECT count(*), array_agg(l.user_id) FILTER (WHERE l.singles > 0) INTO behind, with_singles
    FROM (SELECT c.user_id, c.singles FROM channel_members c
          WHERE c.channel_id = e.channel_id AND c.user_id > m.last_user AND c.user_id <= last AND c.ts < e.ts AND c.ord < e.ord
          ORDER BY c.user_id FOR NO KEY UPDATE) l; -- as marks lock them
    IF behind > 0 THEN
        UPDATE channel_members c SET ts = e.ts, seq = e.seq, ord = e.ord, changed = pg_current_xact_id(),
            own = greatest(c.own, (SELECT a.posts FROM month_authors a WHERE a.channel_id = c.channel_id AND a.user_id = c.user_id))
        WHERE c.channel_id = e.channel_id AND c.user_id > m.last_user AND c.user_id <= last AND c.ts < e.ts AND c.ord < e.ord;
        moved := true;
        IF with_singles IS NOT NULL THEN
            PERFORM singles_pass(ARRAY[e.channel_id], with_singles);
        END IF;
    END IF;
    m.last_user := last;
END $$;

-- A batch of `heads`: channels whose latest message is about to be dropped have none any more, nor pins of such messages.
CREATE FUNCTION month_heads(INOUT m month_expiring, OUT rows bigint, OUT quiet text[]) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    page text[] := ARRAY(SELECT k.channel_id FROM month_channels k WHERE k.channel_id > m.last_channel ORDER BY k.channel_id LIMIT 200);
    pinned text[];
BEGIN
    rows := cardinality(page);
    m.last_channel := page[rows];
    quiet := ARRAY(SELECT c.id FROM channels c JOIN month_channels k ON k.channel_id = c.id
                   WHERE c.id = ANY (page) AND c.latest_ts BETWEEN 1 AND k.ts);
    pinned := ARRAY(SELECT p.channel_id FROM pins p JOIN month_channels k ON k.channel_id = p.channel_id
                    WHERE p.channel_id = ANY (page) AND p.ts <= k.ts);
    IF cardinality(quiet || pinned) > 0 THEN
        PERFORM channels_hold(quiet || pinned);
        DELETE FROM pins p USING month_channels k WHERE p.channel_id = ANY (pinned) AND k.channel_id = p.channel_id AND p.ts <= k.ts;
        PERFORM channel_cool(h.id) FROM (SELECT c.id FROM channels c WHERE c.id = ANY (quiet) AND c.is_hot ORDER BY c.id) h;
        UPDATE channels c SET latest_ts = 0, latest_user = '', latest_preview = '', changed = pg_current_xact_id()
        FROM month_channels k WHERE c.id = ANY (quiet) AND k.channel_id = c.id AND c.latest_ts <= k.ts;
    END IF;
END $$;

-- A batch of a step that is named after its table: deletes rows that belong to the month or to earlier ones. `key`: the columns of the
-- primary key. The second one rises with `age`, so after the first row that stays, all others of its channel stay too.
CREATE FUNCTION month_delete(INOUT m month_expiring, key text[], age text, OUT rows bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last record;
    has_user boolean := cardinality(key) = 3;
BEGIN
    EXECUTE format('
        WITH page AS MATERIALIZED (
            SELECT r.ctid AS place, r.channel_id, r.%2$I AS number, %3$s AS member, r.%4$I < $4 AS goes FROM %1$I r
            WHERE (%5$s) > (%6$s) ORDER BY %5$s LIMIT 1000
        ), gone AS (
            DELETE FROM %1$I r USING page p WHERE r.ctid = p.place AND p.goes RETURNING 1
        )
        SELECT p.channel_id, p.number, p.member, p.goes, (SELECT count(*) FROM gone) AS rows FROM page p
        ORDER BY p.channel_id DESC, p.number DESC, p.member DESC LIMIT 1',
        (month_steps())[m.step], key[2], CASE WHEN has_user THEN 'r.user_id' ELSE '''''::text' END, age,
        'r.' || array_to_string(key, ', r.'), CASE WHEN has_user THEN '$1, $2, $3' ELSE '$1, $2' END)
    INTO last USING m.last_channel, m.last_number, m.last_user, m.kept_from;
    m.last_channel := last.channel_id;
    m.last_number := CASE WHEN last.goes THEN last.number ELSE 9223372036854775807 END;
    m.last_user := last.member;
    rows := last.rows;
END $$;

-- Deletes the working data, which nobody else uses.
CREATE FUNCTION month_forget() RETURNS void LANGUAGE sql VOLATILE AS $$
    TRUNCATE month_channels, month_authors;
    DELETE FROM month_expiring;
$$;

-- Detaches the month from messages. While this lock is waited for, everyone who comes later waits behind it. So the wait is short, and
-- nothing else is done under the lock. While another session holds the table, which pg_dump does for hours, this fails.
CREATE FUNCTION month_detach(month text) RETURNS void LANGUAGE plpgsql VOLATILE SET lock_timeout = '30ms' AS $$
BEGIN
    LOCK TABLE messages IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = 'messages'::regclass AND i.inhrelid = to_regclass(month)) THEN
        EXECUTE format('ALTER TABLE messages DETACH PARTITION %I', month);
    END IF;
END $$;

-- The steps that concern the partition as a whole. `calm` keeps autovacuum away: a run in progress would hold up `detach`, and gives way
-- only to those who wait longer. `drop` deletes the files, which nobody sees any more. Nobody waits for these two steps.
CREATE FUNCTION month_table(month text, step text) RETURNS void LANGUAGE plpgsql VOLATILE SET lock_timeout = '1500ms' AS $$
BEGIN
    IF step = 'detach' THEN
        PERFORM month_detach(month);
    ELSIF step = 'calm' THEN
        EXECUTE format('ALTER TABLE IF EXISTS %I SET (autovacuum_enabled = off)', month);
    ELSE
        EXECUTE format('DROP TABLE IF EXISTS %I', month);
    END IF;
END $$;

-- One batch of the step that `m` is at. `m`.last_channel is NULL at the end of the step. `told`: channels in which members' views have
-- changed.
CREATE FUNCTION month_batch(INOUT m month_expiring, INOUT told text[], OUT rows bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    b record;
    step text := (month_steps())[m.step];
    channel text;
BEGIN
    CASE step
        WHEN 'read' THEN SELECT * INTO b FROM month_read(m);
        WHEN 'move' THEN
            channel := m.last_channel;
            SELECT * INTO b FROM month_move(m);
            IF b.moved AND channel IS DISTINCT FROM told[cardinality(told)] THEN
                told := told || channel;
            END IF;
        WHEN 'heads' THEN
            SELECT * INTO b FROM month_heads(m);
            told := told || b.quiet;
        WHEN 'mentions' THEN SELECT * INTO b FROM month_delete(m, '{channel_id,ts,user_id}', 'ts');
        WHEN 'thread_members' THEN SELECT * INTO b FROM month_delete(m, '{channel_id,thread_ts,user_id}', 'thread_ts');
        WHEN 'threads' THEN SELECT * INTO b FROM month_delete(m, '{channel_id,ts}', 'ts');
        WHEN 'changes' THEN SELECT * INTO b FROM month_delete(m, '{channel_id,seq}', 'event_ts');
        ELSE
            PERFORM month_table(m.month, step);
            m.last_channel := NULL;
            RETURN;
    END CASE;
    m := b.m;
    rows := b.rows;
END $$;

-- The month that is being dropped, or a new one if `begins`. A month is let go if it is to stay after all, because the setting changed or a
-- clock was set back.
CREATE FUNCTION month_under_way(keep_days integer, begins boolean) RETURNS SETOF month_expiring LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM month_expiring e WHERE e.step <= array_position(month_steps(), 'detach')
               AND to_timestamp(e.kept_from / 1e6) >= now() - make_interval(days => keep_days)) THEN
        PERFORM month_forget();
    END IF;
    IF begins AND NOT EXISTS (SELECT 1 FROM month_expiring) THEN
        INSERT INTO month_expiring (month, kept_from) SELECT o.month, o.kept_from FROM month_oldest(keep_days) o WHERE o.month IS NOT NULL;
    END IF;
    RETURN QUERY SELECT * FROM month_expiring;
END $$;

-- One piece of the work on a month, of about `budget_ms`. `state`: 'none', there is nothing to do, or
-- the clock has leapt; 'elsewhere', another instance is at it;
-- 'going', call again; 'gone', that was the last piece of this month.
CREATE FUNCTION month_expire(keep_days integer, budget_ms integer, begins boolean, OUT state text, OUT month text, OUT step text,
                             OUT piece_rows bigint, OUT rows bigint, OUT pieces bigint, OUT age_ms bigint)
LANGUAGE plpgsql VOLATILE SET lock_timeout = '50ms' SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    m month_expiring;
    told text[] := '{}';
    b record;
    until timestamptz := clock_timestamp() + budget_ms * interval '1 millisecond';
BEGIN
    piece_rows := 0;
    IF NOT upkeep_try() THEN
        state := 'elsewhere';
        age_ms := (SELECT extract(epoch FROM clock_timestamp() - e.began) * 1000 FROM month_expiring e);
        RETURN;
    END IF;
    IF clock_hold_us() > 0 THEN
        state := 'none';
        RETURN;
    END IF;
    SELECT * INTO m FROM month_under_way(keep_days, begins);
    state := CASE WHEN m.month IS NULL THEN 'none' WHEN (month_steps())[m.step] = 'end' THEN 'gone' ELSE 'going' END;
    month := m.month;
    step := (month_steps())[m.step];
    age_ms := extract(epoch FROM clock_timestamp() - m.began) * 1000;
    IF state = 'gone' THEN
        PERFORM month_forget();
    ELSIF state = 'going' THEN
        LOOP
            SELECT * INTO b FROM month_batch(m, told);
            m := b.m;
            told := b.told;
            piece_rows := piece_rows + coalesce(b.rows, 0);
            EXIT WHEN m.last_channel IS NULL OR clock_timestamp() >= until;
        END LOOP;
        IF cardinality(told) > 0 THEN
            INSERT INTO change_log (channels) VALUES (told);
        END IF;
        UPDATE month_expiring e SET step = m.step + (m.last_channel IS NULL)::integer, last_channel = coalesce(m.last_channel, ''),
            last_number = CASE WHEN m.last_channel IS NULL THEN 0 ELSE m.last_number END,
            last_user = CASE WHEN m.last_channel IS NULL THEN '' ELSE m.last_user END, pieces = e.pieces + 1, rows = e.rows + piece_rows;
    END IF;
    rows := m.rows + piece_rows;
    pieces := m.pieces + 1;
END $$;
