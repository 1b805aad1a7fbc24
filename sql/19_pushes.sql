-- SPDX-License-Identifier: Apache-2.0
-- Pushes. Events add jobs: a job records that a conversation (a channel, or a thread in it) may have something to notify a device of. What
-- is sent is decided when the device's turn comes, by the state at that moment. docs/decisions/2026-11-25-pushes.md

-- The workspaces with a device, by one index lookup for each.
CREATE FUNCTION push_workspaces() RETURNS TABLE (workspace text) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE found AS (
        (SELECT d.workspace_id FROM devices d ORDER BY d.workspace_id LIMIT 1)
        UNION ALL
        SELECT (SELECT d.workspace_id FROM devices d WHERE d.workspace_id > f.workspace_id ORDER BY d.workspace_id LIMIT 1)
        FROM found f WHERE f.workspace_id IS NOT NULL
    )
    SELECT f.workspace_id FROM found f WHERE f.workspace_id IS NOT NULL
$$;

-- The members of a channel who have a device; `all_hearing`: only those who are notified of all messages. Scans the smaller set: these
-- devices of the workspace, or the members.
CREATE FUNCTION push_members(workspace text, channel text, all_hearing boolean) RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
DECLARE
    members bigint := (SELECT c.member_count FROM channels c WHERE c.id = channel);
    owners bigint;
BEGIN
    IF all_hearing THEN
        SELECT count(*) INTO owners FROM (SELECT 1 FROM devices d WHERE d.workspace_id = workspace AND d.hears_all LIMIT members) l;
    ELSE
        SELECT count(*) INTO owners FROM (SELECT 1 FROM devices d WHERE d.workspace_id = workspace LIMIT members) l;
    END IF;
    IF owners < members THEN
        RETURN QUERY SELECT o.user_id FROM (SELECT DISTINCT d.user_id FROM devices d
                                            WHERE d.workspace_id = workspace AND (d.hears_all OR NOT all_hearing)) o
        WHERE (SELECT m.active FROM channel_members m WHERE m.channel_id = channel AND m.user_id = o.user_id);
    ELSE
        RETURN QUERY SELECT m.user_id FROM channel_members m
        WHERE m.channel_id = channel AND m.active
          AND EXISTS (SELECT 1 FROM devices d WHERE d.user_id = m.user_id AND (d.hears_all OR NOT all_hearing));
    END IF;
END $$;

-- Creates missing turns for the devices of these users, and locks the turns in order: after the devices, before jobs.
CREATE FUNCTION push_turns_add(users text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM devices d WHERE d.user_id = ANY (users) ORDER BY d.user_id, d.app, d.device_id FOR KEY SHARE;
    INSERT INTO push_turns (user_id, app, device_id, workspace_id, badge)
    SELECT d.user_id, d.app, d.device_id, d.workspace_id, 0
    FROM devices d WHERE d.user_id = ANY (users)
      AND NOT EXISTS (SELECT 1 FROM push_turns t WHERE t.user_id = d.user_id AND t.app = d.app AND t.device_id = d.device_id)
    ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING;
    PERFORM FROM push_turns t WHERE t.user_id = ANY (users) ORDER BY t.user_id, t.app, t.device_id FOR NO KEY UPDATE;
END $$;

-- Notes that the badges of these users, whose turns the caller has locked, may have changed. They are checked a little later, so that
-- several changes make one push.
CREATE FUNCTION push_turns_touch(users text[], wait_ms bigint DEFAULT 500) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_turns t SET touched_at = clock_timestamp(),
        due_at = CASE WHEN t.leased_at IS NULL AND t.tries = 0
                      THEN least(t.due_at, clock_timestamp() + wait_ms * interval '1 millisecond') ELSE t.due_at END
    WHERE t.user_id = ANY (users);
END $$;

-- enable_seqscan is off, here and below, because sessions keep plans from when the tables were small, which would scan all of them.
CREATE FUNCTION push_touch(owner text) RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    PERFORM push_turns_add(ARRAY[owner]);
    PERFORM push_turns_touch(ARRAY[owner]);
END $$;

-- When a device's next job is due or to be checked. PL/pgSQL, here and below, keeps its plans; a function in SQL would be planned at each call.
CREATE FUNCTION push_next(t push_turns) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT min(least(j.due_at, j.check_at)) FROM push_jobs j
            WHERE (j.user_id, j.app, j.device_id) = (t.user_id, t.app, t.device_id));
END $$;

-- Brings the turns of these users, which the caller has locked, forward to their devices' next jobs.
CREATE FUNCTION push_turns_follow(users text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_turns t SET due_at = least(t.due_at, push_next(t)) WHERE t.user_id = ANY (users) AND t.leased_at IS NULL AND t.tries = 0;
END $$;

-- Until when a conversation rests. A rest that ends later than any may was begun while the clock was ahead, and is over.
CREATE FUNCTION push_rest(j push_jobs) RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT CASE WHEN j.rests_until <= clock_timestamp() + interval '1 minute' THEN j.rests_until END $$;

-- Adds jobs, one per entry, for users whose turns the caller has locked. Messages up to the last one that a user was notified of add
-- nothing. Returns the number of jobs.
CREATE FUNCTION push_jobs_add(users text[], channels text[], threads bigint[], tss bigint[]) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    added bigint;
BEGIN
    WITH put AS (
        INSERT INTO push_jobs AS j (user_id, app, device_id, channel_id, thread_ts, workspace_id, ts, told_ts, due_at, since)
        SELECT t.user_id, t.app, t.device_id, w.channel, w.thread, t.workspace_id, w.ts, 0, clock_timestamp(), clock_timestamp()
        FROM (SELECT u.user_id, u.channel, u.thread, max(u.ts) AS ts
              FROM unnest(users, channels, threads, tss) AS u (user_id, channel, thread, ts) GROUP BY 1, 2, 3) w
        CROSS JOIN LATERAL (SELECT x.* FROM push_turns x WHERE x.user_id = w.user_id OFFSET 0) t -- a lookup, however many turns the planner expects
        ORDER BY t.user_id, t.app, t.device_id, w.channel, w.thread
        ON CONFLICT (user_id, app, device_id, channel_id, thread_ts) DO UPDATE SET ts = greatest(j.ts, excluded.ts),
            due_at = greatest(excluded.due_at, push_rest(j)), since = coalesce(CASE WHEN j.due_at IS NOT NULL THEN j.since END, excluded.since),
            is_dead = false, changed_at = now()
        WHERE excluded.ts > j.told_ts
        RETURNING 1
    ) SELECT count(*) INTO added FROM put;
    PERFORM push_turns_follow(users);
    RETURN added;
END $$;

-- The users whom posts and edits concern, one event per entry: users mentioned, members of a direct conversation, members who are notified
-- of all messages in the channel, followers of the thread; of an edit, only those whom it mentions anew. Whether they are notified is
-- decided later. The posts of a channel are handled together, as a range of ts; each edit is handled alone.
CREATE FUNCTION push_targets(kinds text[], workspaces text[], channels text[], seqs bigint[], tss bigint[], users text[])
RETURNS TABLE (user_id text, channel text, thread bigint, ts bigint) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    WITH stretches AS MATERIALIZED (
        SELECT e.workspace, e.channel, min(e.ts) AS low, max(e.ts) AS high, min(e.author) AS author, min(e.author) = max(e.author) AS is_of_one,
               CASE WHEN e.kind = 'edit' THEN e.seq END AS edit
        FROM unnest(kinds, workspaces, channels, seqs, tss, users) AS e (kind, workspace, channel, seq, ts, author) WHERE e.kind IN ('post', 'edit')
        GROUP BY e.workspace, e.channel, CASE WHEN e.kind = 'edit' THEN e.seq END
    ), loud AS MATERIALIZED (
        SELECT w.workspace FROM (SELECT DISTINCT s.workspace FROM stretches s) w
        WHERE EXISTS (SELECT 1 FROM devices d WHERE d.workspace_id = w.workspace AND d.hears_all)
    ), posts AS MATERIALIZED (
        SELECT s.*, m.ts, m.has_replies, n.users AS named, n.tss AS named_tss, h.mentioned,
               s.edit IS NULL AND c.people IS NOT NULL OR n.users @> '{""}' AS is_for_all
        FROM stretches s
        LEFT JOIN LATERAL (SELECT x.mentioned FROM changes x WHERE s.edit IS NOT NULL AND x.channel_id = s.channel AND x.seq = s.edit) h ON true
        CROSS JOIN LATERAL (SELECT x.people FROM channels x WHERE x.id = s.channel) c
        CROSS JOIN LATERAL (SELECT max(x.ts) FILTER (WHERE x.counted) AS ts, bool_or(x.thread_ts IS NOT NULL) AS has_replies
                            FROM messages x WHERE x.channel_id = s.channel AND x.ts BETWEEN s.low AND s.high AND NOT x.deleted) m
        CROSS JOIN LATERAL (SELECT array_agg(x.user_id) AS users, array_agg(x.ts) AS tss
                            FROM mentions x WHERE x.channel_id = s.channel AND x.ts BETWEEN s.low AND s.high AND x.counted
                              AND (s.edit IS NULL OR x.user_id = ANY (h.mentioned))) n
    ), found AS (
        SELECT n.user_id, p.channel, 0::bigint AS thread, n.ts, p.author, p.is_of_one
        FROM posts p CROSS JOIN LATERAL unnest(p.named, p.named_tss) AS n (user_id, ts) WHERE n.user_id <> ''
        UNION ALL
        SELECT m.user_id, p.channel, 0, p.ts, p.author, p.is_of_one
        FROM posts p CROSS JOIN LATERAL push_members(p.workspace, p.channel, false) AS m (user_id) WHERE p.ts IS NOT NULL AND p.is_for_all
        UNION ALL
        SELECT m.user_id, p.channel, 0, p.ts, p.author, p.is_of_one
        FROM posts p CROSS JOIN LATERAL push_members(p.workspace, p.channel, true) AS m (user_id)
        WHERE p.ts IS NOT NULL AND p.edit IS NULL AND p.workspace IN (SELECT l.workspace FROM loud l)
        UNION ALL
        SELECT m.user_id, p.channel, 0, p.ts, p.author, p.is_of_one
        FROM posts p CROSS JOIN LATERAL (SELECT x.user_id FROM channel_members x
                                         WHERE x.channel_id = p.channel AND x.notify = 'every' AND x.active) m
        WHERE p.ts IS NOT NULL AND p.edit IS NULL
        UNION ALL
        SELECT f.user_id, p.channel, r.thread_ts, r.ts, p.author, p.is_of_one
        FROM posts p
        CROSS JOIN LATERAL (SELECT x.thread_ts, x.ts FROM messages x WHERE x.channel_id = p.channel AND x.ts BETWEEN p.low AND p.high
                              AND x.thread_ts IS NOT NULL AND NOT x.deleted) r
        CROSS JOIN LATERAL (SELECT x.user_id FROM thread_members x
                            WHERE x.channel_id = p.channel AND x.thread_ts = r.thread_ts AND x.following AND p.edit IS NULL
                            UNION ALL
                            SELECT x.user_id FROM mentions x
                            WHERE x.channel_id = p.channel AND x.ts = r.ts AND x.user_id <> '' AND NOT x.counted
                              AND (p.edit IS NULL OR x.user_id = ANY (p.mentioned))) f
        WHERE p.has_replies
    )
    SELECT f.user_id, f.channel, f.thread, max(f.ts) FROM found f
    WHERE EXISTS (SELECT 1 FROM devices d WHERE d.user_id = f.user_id)
      AND NOT (f.is_of_one AND f.author = f.user_id -- whose badge changes if this opens what they had closed
               AND NOT EXISTS (SELECT 1 FROM channel_members m WHERE m.channel_id = f.channel AND m.user_id = f.user_id AND m.closed_ord IS NOT NULL))
    GROUP BY 1, 2, 3;
END $$;

-- The users whose badges may have changed by events other than posts.
CREATE FUNCTION push_touched(kinds text[], workspaces text[], channels text[], seqs bigint[], tss bigint[], users text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(array_agg(DISTINCT a.user_id), '{}')
        FROM unnest(kinds, workspaces, channels, seqs, tss, users) AS e (kind, workspace, channel, seq, ts, about)
        CROSS JOIN LATERAL (
            SELECT e.about AS user_id WHERE e.kind IN ('mark', 'thread_mark', 'thread_follow', 'join', 'leave')
            UNION ALL
            SELECT j.user_id FROM push_jobs j WHERE e.kind IN ('edit', 'delete') AND j.channel_id = e.channel AND j.shown_ts = e.ts
            UNION ALL
            SELECT j.user_id FROM push_jobs j WHERE e.kind IN ('edit', 'delete') AND j.channel_id = e.channel AND j.summed_ts = e.ts
            UNION ALL
            SELECT j.user_id FROM push_jobs j -- whose push of the message may be in flight; the last condition is that of the index
            WHERE e.kind IN ('edit', 'delete') AND j.channel_id = e.channel AND j.ts >= e.ts AND j.told_ts < e.ts AND j.ts > j.told_ts
            UNION ALL
            SELECT n.user_id FROM changes h CROSS JOIN LATERAL unnest(h.mentioned) AS n (user_id) WHERE h.channel_id = e.channel AND h.seq = e.seq
            UNION ALL
            SELECT m.user_id FROM push_members(e.workspace, e.channel, true) AS m (user_id) WHERE e.kind = 'delete'
            UNION ALL
            SELECT m.user_id FROM channels c CROSS JOIN LATERAL push_members(e.workspace, e.channel, false) AS m (user_id)
            WHERE c.id = e.channel AND (e.kind IN ('archive', 'unarchive') OR (e.kind = 'delete' AND c.people IS NOT NULL)
                  OR EXISTS (SELECT 1 FROM changes h WHERE h.channel_id = e.channel AND h.seq = e.seq AND '' = ANY (h.mentioned)))) a
        WHERE e.kind <> 'post' AND EXISTS (SELECT 1 FROM devices d WHERE d.user_id = a.user_id));
END $$;

-- Has the conversations checked of whose notifications, shown or under way, events may have changed what they say or whether they are
-- wanted. The caller has locked the turns of these users.
CREATE FUNCTION push_jobs_touch(touched text[], kinds text[], channels text[], tss bigint[], users text[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_jobs j SET check_at = least(j.check_at, greatest(clock_timestamp() + interval '400 milliseconds', -- before that of push_turns_touch()
                                                                 CASE WHEN e.kind = 'edit' THEN push_rest(j) END))
    FROM unnest(kinds, channels, tss, users) AS e (kind, channel, ts, about)
    WHERE j.user_id = ANY (touched) AND j.channel_id = e.channel AND (j.shown_ts IS NOT NULL OR j.summed_ts IS NOT NULL OR j.due_at IS NOT NULL)
      AND CASE WHEN e.kind IN ('edit', 'delete') THEN e.ts IN (j.shown_ts, j.summed_ts) OR j.told_ts < e.ts AND j.ts >= e.ts
               WHEN e.kind IN ('archive', 'unarchive') THEN true
               WHEN e.kind <> 'post' THEN j.user_id = e.about END;
    IF 'edit' = ANY (kinds) THEN -- of a push that was settled while this waited for the turns, push_touched() did not know
        PERFORM push_turns_follow(touched);
    END IF;
END $$;

-- Has all that a user's devices show of a channel checked (NULL: of all), and their badges: the user's own wishes have changed.
CREATE FUNCTION push_recheck(owner text, channel text) RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    PERFORM push_touch(owner);
    UPDATE push_jobs j SET check_at = least(j.check_at, clock_timestamp() + interval '400 milliseconds')
    WHERE j.user_id = owner AND j.channel_id = coalesce(channel, j.channel_id)
      AND (j.shown_ts IS NOT NULL OR j.summed_ts IS NOT NULL OR j.due_at IS NOT NULL);
END $$;

-- Notes that these users' read positions in these channels have changed, one per entry. Fan-out workers do not learn of such marks.
CREATE FUNCTION push_marked(users text[], channels text[]) RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    owners text[] := ARRAY(SELECT DISTINCT d.user_id FROM devices d WHERE d.user_id = ANY (users));
BEGIN
    IF owners = '{}' THEN
        RETURN;
    END IF;
    PERFORM push_turns_add(owners);
    PERFORM push_turns_touch(owners);
    PERFORM push_jobs_touch(owners, array_fill('mark'::text, ARRAY[cardinality(users)]), channels,
                            array_fill(0::bigint, ARRAY[cardinality(users)]), users);
END $$;

-- Adds what follows from events, one per entry; `tss`: of the message or thread concerned. Without `room`, no jobs are added.
CREATE FUNCTION pushes_add(kinds text[], workspaces text[], channels text[], seqs bigint[], tss bigint[], users text[], room bigint)
RETURNS TABLE (added bigint, dropped bigint) LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    found record; -- arrays
    touched text[] := CASE WHEN 'post' = ALL (kinds) THEN '{}' ELSE push_touched(kinds, workspaces, channels, seqs, tss, users) END;
BEGIN
    SELECT coalesce(array_agg(t.user_id), '{}') AS users, array_agg(t.channel) AS channels, array_agg(t.thread) AS threads, array_agg(t.ts) AS tss
    INTO found FROM push_targets(kinds, workspaces, channels, seqs, tss, users) t;
    added := 0;
    dropped := 0;
    IF found.users || touched <> '{}' THEN
        PERFORM push_turns_add(found.users || touched); -- all at once: see docs/locks.md
    END IF;
    IF room <= 0 THEN
        dropped := cardinality(found.users);
    ELSIF cardinality(found.users) > 0 THEN
        added := push_jobs_add(found.users, found.channels, found.threads, found.tss);
    END IF;
    IF cardinality(touched) > 0 THEN
        PERFORM push_turns_touch(touched);
        PERFORM push_jobs_touch(touched, kinds, channels, tss, users);
        added := added + 1;
    END IF;
    RETURN NEXT;
END $$;

-- An instance has just learnt that the workspace has a device, and has ignored its events until now. Adds jobs for what devices of the last
-- `within_s` have missed, and checks what they show. That is longer ago than the instance's previous check, when the workspace had no device.
CREATE FUNCTION push_workspace_met(workspace text, within_s bigint) RETURNS TABLE (added bigint) LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    owners text[] := ARRAY(SELECT DISTINCT t.user_id FROM push_turns t
                           WHERE t.workspace_id = workspace AND t.made_at > now() - within_s * interval '1 second');
    found record; -- arrays
BEGIN
    SELECT array_agg(t.user_id) AS users, array_agg(w.channel_id) AS channels, array_agg(w.thread) AS threads, array_agg(w.ts) AS tss INTO found
    FROM push_turns t
    CROSS JOIN LATERAL (SELECT m.channel_id FROM channel_members m WHERE m.user_id = t.user_id AND m.active OFFSET 0) c
    CROSS JOIN LATERAL (
        SELECT r.channel_id, p.thread, r.ts FROM messages r
        CROSS JOIN LATERAL (SELECT 0::bigint AS thread WHERE r.counted UNION ALL SELECT r.thread_ts WHERE r.thread_ts IS NOT NULL) p
        WHERE r.channel_id = c.channel_id AND r.ts > extract(epoch FROM t.made_at)::numeric * 1000000 AND r.user_id <> t.user_id
        ORDER BY r.ts DESC LIMIT 100) w
    WHERE t.workspace_id = workspace AND t.made_at > now() - within_s * interval '1 second';
    PERFORM push_turns_add(owners);
    PERFORM push_recheck(o.user_id, NULL) FROM unnest(owners) AS o (user_id);
    added := CASE WHEN found.users IS NOT NULL THEN push_jobs_add(found.users, found.channels, found.threads, found.tss) ELSE 0 END;
    RETURN NEXT;
END $$;
