-- SPDX-License-Identifier: Apache-2.0
-- All channels of a user: what has changed since a transaction, and marking them read.

-- The channels in which the caller's view may have been changed by transactions that a snapshot with xmin `since` did not see. NULL:
-- unknown; or there are more than `rows_max`, or more rows than that to examine. A change is in the outbox until a transaction moves it to
-- the log of changes. That transaction begins after the change was committed, so its xid is at least `since`.
CREATE FUNCTION sync_candidates(caller text, since xid8, rows_max bigint) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF since <= (SELECT s.xid FROM change_log_start s) THEN
        RETURN NULL;
    END IF;
    IF (SELECT count(*) FROM ((SELECT 1 FROM change_log l WHERE l.xid >= since LIMIT rows_max)
                              UNION ALL (SELECT 1 FROM outbox_rows LIMIT rows_max)) r) >= rows_max THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT CASE WHEN count(*) <= rows_max THEN coalesce(array_agg(d.channel), '{}') END
            FROM (SELECT DISTINCT e.channel COLLATE "C" AS channel
                 FROM (SELECT l.channels, l.users FROM change_log l WHERE l.xid >= since
                       UNION ALL SELECT o.channels, CASE WHEN is_personal(o.kinds) THEN o.users END FROM outbox_rows o) t,
                      unnest(t.channels, t.users) AS e (channel, about)
                 WHERE t.users IS NULL OR e.about = caller LIMIT rows_max + 1) d);
END $$;

-- The latest message of a hot channel (ts, seq, ord), and the number of posts that a member has ever made there (NULL: as in the member's
-- row).
CREATE FUNCTION hot_end(channel text, caller text) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT CASE WHEN h.latest_ts = h.last_ts THEN ARRAY[h.last_ts, h.seq, h.ord, h.posts]
                        ELSE (SELECT ARRAY[r.ts, r.seq, r.ord, h.posts] FROM messages r WHERE r.channel_id = channel ORDER BY r.ts DESC LIMIT 1) END
            FROM hot_state(channel, true, caller) h);
END $$;

-- Marks all channels of a user up to their heads, and on request all threads that they follow. `types`: bits 1 << channels.type.
-- `thread_mentions`: those that remain unread in threads. Writes outbox rows of at most 500 channels: `outbox_id`, then `outbox_id`.1 and
-- so on. Cursors only move forward.
-- A user may be in 100,000 channels, so each row is found once, and locked by its update, provided it has not changed since it was found.
-- The rows are found in the order of channels, in which marks lock them, and the settings below make the update take them one by one in that
-- order. If another transaction has changed one of them, everything is rolled back and repeated with all rows locked first.
-- Where a channel's last event is its latest message, its row has all that is needed of that message.
CREATE FUNCTION mark_all(outbox_id text, workspace text, caller text, types bigint, with_threads boolean,
                         OUT changed bigint, OUT told bigint, OUT thread_mentions bigint) LANGUAGE plpgsql VOLATILE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET work_mem = '32MB' AS $$
DECLARE
    held tid[];          -- places of locked rows, which do not move; NULL: none is locked yet
    aimed bigint;        -- the number of rows to change
    with_singles text[]; -- channels with singles
BEGIN
    LOOP
        BEGIN
            WITH found AS (
                SELECT m.*, c.last_ts, c.seq, c.ord, NOT c.is_hot AND c.latest_ts = c.last_ts AS is_last,
                       CASE WHEN c.is_hot THEN hot_end(c.id, caller)
                            WHEN c.latest_ts <> c.last_ts THEN (SELECT ARRAY[r.ts, r.seq, r.ord] FROM messages r WHERE r.channel_id = c.id
                                                                ORDER BY r.ts DESC LIMIT 1) END AS latest
                FROM (SELECT i.ctid AS place, i.channel_id, i.ts AS old_ts, i.posts, i.changed FROM channel_members i
                      WHERE i.user_id = caller AND i.active AND (held IS NULL OR i.ctid IN (SELECT unnest(held))) ORDER BY i.channel_id OFFSET 0) m
                JOIN channels c ON c.id = m.channel_id AND (c.workspace_id = workspace) IS TRUE AND (c.is_hot OR c.last_ts > m.old_ts)
                                   AND NOT c.is_archived AND types >> c.type & 1 = 1 OFFSET 0
            ), aims AS MATERIALIZED (
                SELECT f.place, f.channel_id, f.old_ts, f.posts, f.changed, CASE WHEN f.is_last THEN f.last_ts ELSE f.latest[1] END AS ts,
                       CASE WHEN f.is_last THEN f.seq ELSE f.latest[2] END AS seq, CASE WHEN f.is_last THEN f.ord ELSE f.latest[3] END AS ord,
                       coalesce(f.latest[4], f.posts) AS own
                FROM found f WHERE f.is_last OR f.latest[1] > f.old_ts ORDER BY f.channel_id
            ), rows_told AS (
                INSERT INTO outbox (id, channels, seqs, tss, kinds, users)
                SELECT outbox_id || CASE WHEN k.part > 0 THEN '.' || k.part ELSE '' END, array_agg(k.channel_id), array_agg(k.seq),
                       array_agg(k.ts), array_fill('mark'::text, ARRAY[count(*)::integer]), array_fill(caller, ARRAY[count(*)::integer])
                FROM (SELECT a.channel_id, a.seq, a.ts, (row_number() OVER () - 1) / 500 AS part FROM aims a) k
                GROUP BY k.part RETURNING 1
            ), moved AS (
                UPDATE channel_members m SET ts = a.ts, seq = a.seq, ord = a.ord, own = a.own, changed = pg_current_xact_id()
                FROM aims a WHERE m.ctid = a.place AND m.ts = a.old_ts AND m.posts = a.posts AND m.changed = a.changed
                RETURNING m.channel_id, m.singles
            )
            SELECT (SELECT count(*) FROM aims), (SELECT count(*) FROM rows_told), (SELECT count(*) FROM moved),
                   (SELECT array_agg(v.channel_id) FROM moved v WHERE v.singles > 0) INTO aimed, told, changed, with_singles;
            EXIT WHEN changed = aimed;
            RAISE EXCEPTION USING ERRCODE = 'TD002';
        EXCEPTION WHEN SQLSTATE 'TD002' THEN
            SELECT coalesce(array_agg(l.place), '{}') INTO held
            FROM (SELECT m.ctid AS place
                  FROM channel_members m
                  JOIN channels c ON c.id = m.channel_id AND (c.workspace_id = workspace) IS TRUE AND (c.is_hot OR c.last_ts > m.ts)
                                     AND NOT c.is_archived AND types >> c.type & 1 = 1
                  WHERE m.user_id = caller AND m.active ORDER BY m.channel_id, m.user_id FOR NO KEY UPDATE OF m) l;
        END;
    END LOOP;
    IF with_singles IS NOT NULL THEN
        PERFORM singles_pass(with_singles, ARRAY[caller]);
    END IF;
    IF with_threads AND threads_mark_all(outbox_id, workspace, caller) > 0 THEN
        told := greatest(told, 1);
    END IF;
    thread_mentions := (SELECT t.mention_count FROM thread_totals(workspace, caller) t);
END $$;

-- Commits many marks of one user, each as in mark_batch(); returns the states after all of them. Takes all locks first, in the order of
-- marks. Writes outbox rows of at most 500 marks: `outbox_id`, then `outbox_id`.1 and so on; none for marks that changed nothing.
CREATE FUNCTION mark_many(outbox_id text, workspace text, caller text, channel_ids text[], tss bigint[], epochs bigint[])
RETURNS SETOF mark_answers LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    size integer := cardinality(channel_ids);
    upto integer;
BEGIN
    PERFORM members_lock(channel_ids, array_fill(caller, ARRAY[size]));
    FOR begun IN 1..size BY 500 LOOP
        upto := least(begun + 499, size);
        RETURN QUERY SELECT * FROM mark_batch(
            outbox_id || CASE WHEN begun > 1 THEN '.' || begun / 500 ELSE '' END, ARRAY(SELECT generate_series(begun - 1, upto - 1)::bigint),
            array_fill(workspace, ARRAY[upto - begun + 1]), array_fill(caller, ARRAY[upto - begun + 1]), channel_ids[begun:upto],
            tss[begun:upto], epochs[begun:upto]);
    END LOOP;
END $$;

-- What a position covers: `sent`, its transaction. Within a backlog, the channels before (`place`, `part`) were sent up to `later`, and the
-- channel `place` up to `place_seq`; otherwise `place` is ''. The channels `ids` were sent up to `seqs`.
CREATE TYPE covered AS (sent xid8, later xid8, place text, part bigint, place_seq bigint, ids text[], seqs bigint[]);

-- The event of a channel up to which a position certainly covers it.
CREATE FUNCTION covered_seq(channel text, c covered) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(
        channel_seq_below(channel, CASE WHEN (channel COLLATE "C", 0) < (c.place COLLATE "C", c.part) THEN c.later ELSE c.sent END),
        CASE WHEN channel = c.place AND c.part = 0 THEN c.place_seq END, c.seqs[array_position(c.ids, channel)]);
END $$;

-- The end of what is marked in a channel: `until_ts`, or if it is NULL, the last message that the position covers. Where nothing changed
-- since the position, that is the head.
CREATE FUNCTION until_bound(channel text, until_ts bigint, until covered) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    head record;
BEGIN
    IF until_ts IS NOT NULL THEN
        RETURN until_ts;
    END IF;
    SELECT h.last_ts, h.changed INTO head FROM channel_heads h WHERE h.id = channel;
    RETURN CASE WHEN head.changed < until.sent THEN head.last_ts ELSE message_ts_at_seq(channel, covered_seq(channel, until)) END;
END $$;

-- Like threads_mark_all(), up to a bound (see until_bound()). The rows are locked.
CREATE FUNCTION threads_mark_until(outbox_id text, workspace text, caller text, until_ts bigint, until covered) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moved record; -- arrays, with an entry for each cursor that moved
BEGIN
    WITH behind AS MATERIALIZED (
        SELECT m.channel_id, m.thread_ts, m.ts FROM thread_members m
        JOIN threads t ON t.channel_id = m.channel_id AND t.ts = m.thread_ts AND t.last_ts > m.ts
        JOIN channels c ON c.id = m.channel_id AND (c.workspace_id = workspace) IS TRUE AND NOT c.is_archived
        WHERE m.user_id = caller AND m.following
    ), bounds AS MATERIALIZED (
        SELECT d.channel_id, until_bound(d.channel_id, until_ts, until) AS ts
        FROM (SELECT DISTINCT b.channel_id FROM behind b) d
    ), aims AS MATERIALIZED (
        SELECT b.channel_id, b.thread_ts, r.ts FROM behind b JOIN bounds u ON u.channel_id = b.channel_id
        CROSS JOIN LATERAL (SELECT x.ts FROM messages x WHERE x.channel_id = b.channel_id AND x.thread_ts = b.thread_ts AND x.ts <= u.ts
                            ORDER BY x.ts DESC LIMIT 1) r
        WHERE r.ts > b.ts
    ), marked AS (
        UPDATE thread_members m SET ts = a.ts, changed = pg_current_xact_id() FROM aims a
        WHERE m.channel_id = a.channel_id AND m.thread_ts = a.thread_ts AND m.user_id = caller
        RETURNING m.channel_id, m.thread_ts
    )
    SELECT array_agg(k.channel_id) AS channels, array_agg(k.thread_ts) AS threads INTO moved FROM marked k;
    RETURN thread_marks_tell(outbox_id, caller, moved.channels, moved.threads);
END $$;

-- Like mark_all(), up to a bound (see until_bound()): nothing later is marked.
CREATE FUNCTION mark_until(outbox_id text, workspace text, caller text, types bigint, with_threads boolean, until_ts bigint, until covered,
                           OUT changed bigint, OUT told bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    aims record; -- arrays, with an entry for each channel
    size integer;
BEGIN
    SELECT array_agg(t.channel_id ORDER BY t.channel_id) AS channels, array_agg(t.ts ORDER BY t.channel_id) AS tss INTO aims
    FROM (SELECT b.channel_id, r.ts
          FROM (SELECT m.channel_id, m.ts, until_bound(m.channel_id, until_ts, until) AS bound
                FROM channel_members m JOIN channels c ON c.id = m.channel_id AND (c.workspace_id = workspace) IS TRUE
                                                      AND (c.is_hot OR c.last_ts > m.ts) AND NOT c.is_archived AND types >> c.type & 1 = 1
                WHERE m.user_id = caller AND m.active OFFSET 0) b
          CROSS JOIN LATERAL (SELECT x.ts FROM messages x WHERE x.channel_id = b.channel_id AND x.ts <= b.bound
                              ORDER BY x.ts DESC LIMIT 1) r
          WHERE r.ts > b.ts) t;
    size := coalesce(cardinality(aims.channels), 0);
    changed := 0;
    -- All locks in the order of locks.md: mark_many() goes on to those of pushes.
    PERFORM members_lock(aims.channels, array_fill(caller, ARRAY[size]));
    IF with_threads THEN
        PERFORM threads_lock(caller);
    END IF;
    IF size > 0 THEN
        SELECT count(*) INTO changed FROM mark_many(outbox_id, workspace, caller, aims.channels, aims.tss, array_fill(-1::bigint, ARRAY[size])) a
        WHERE a.changed;
    END IF;
    told := (size + 499) / 500;
    IF with_threads AND threads_mark_until(outbox_id, workspace, caller, until_ts, until) > 0 THEN
        told := greatest(told, 1);
    END IF;
END $$;
