-- SPDX-License-Identifier: Apache-2.0
-- The outcomes of pushes: recorded, and cleaned up; dead letters.

-- Extends the leases of pushes that are still in flight by `lease_ms`.
CREATE FUNCTION pushes_hold(users text[], apps text[], device_ids text[], leases bigint[], lease_ms bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM unnest(users, apps, device_ids) AS s (user_id, app, device_id)
    JOIN push_turns t ON t.user_id = s.user_id AND t.app = s.app AND t.device_id = s.device_id
    ORDER BY t.user_id, t.app, t.device_id FOR NO KEY UPDATE OF t;
    UPDATE push_turns t SET due_at = clock_timestamp() + lease_ms * interval '1 millisecond'
    FROM unnest(users, apps, device_ids, leases) AS s (user_id, app, device_id, lease)
    WHERE t.user_id = s.user_id AND t.app = s.app AND t.device_id = s.device_id AND t.lease = s.lease AND t.leased_at IS NOT NULL;
END $$;

-- Records the outcome of the ring that was sent to a device. Returns the number of dead letters made.
CREATE FUNCTION push_ring_settle(t push_turns, outcome text, why text, pause_ms bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    is_summary boolean := t.sent_kind = 'summary';
    j push_jobs;
    upto bigint; -- the last message that the push covered
    dead bigint := 0;
BEGIN
    FOR j IN SELECT x.* FROM push_jobs x
             WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id)
               AND CASE WHEN is_summary THEN x.is_quiet AND x.since <= t.leased_at AND x.summed_ts IS NOT NULL
                        ELSE x.channel_id = t.sent_channel AND x.thread_ts = t.sent_thread END LOOP
        upto := CASE WHEN is_summary THEN j.summed_ts ELSE t.sent_ts END;
        IF outcome = 'refused' THEN
            PERFORM push_job_kill(j, upto, why);
            dead := dead + 1;
        ELSIF outcome = 'retry' THEN
            UPDATE push_jobs x SET reason = why
            WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
        ELSIF is_summary THEN
            PERFORM push_job_end(j, upto, pause_ms);
        ELSE
            PERFORM push_job_end(j, upto, pause_ms, t.sent_ts, t.sent_digest);
            IF j.summed_ts IS NOT NULL THEN
                PERFORM push_sum(j, NULL);
            END IF;
        END IF;
    END LOOP;
    IF is_summary AND outcome = 'delivered' THEN
        PERFORM push_summary_show(t, t.sent_digest);
    END IF;
    RETURN dead;
END $$;

-- Notes that the correction which was sent to a device arrived, or was refused: it would be again.
CREATE FUNCTION push_correction_settle(t push_turns, pause_ms bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_jobs x SET shown_ts = CASE WHEN t.sent_kind = 'replacement' THEN t.sent_ts END, shown_digest = t.sent_digest, changed_at = now(),
        rests_until = CASE WHEN t.sent_kind = 'replacement' THEN clock_timestamp() + pause_ms * interval '1 millisecond' ELSE x.rests_until END
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (t.user_id, t.app, t.device_id, t.sent_channel, t.sent_thread);
END $$;

-- Records the outcome of one push. `wait_ms`: time until the next attempt; 0: longer with each attempt. `held_s`: the user is active for so
-- long, and the ring became at most a silent push. Returns the number of dead letters made.
CREATE FUNCTION push_turn_settle(t push_turns, held_s bigint, outcome text, wait_ms bigint, why text, pause_ms bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    dead bigint := 0;
    wait interval := CASE WHEN wait_ms > 0 THEN wait_ms * interval '1 millisecond' ELSE push_wait(t.tries) END;
BEGIN
    IF held_s > 0 THEN
        UPDATE push_jobs x SET due_at = h.until, since = h.until, is_held = true
        FROM (SELECT clock_timestamp() + held_s * interval '1 second' AS until) h
        WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id) AND x.due_at < h.until;
    ELSIF t.sent_kind IN ('message', 'summary') THEN
        dead := push_ring_settle(t, outcome, why, pause_ms);
    ELSIF t.sent_kind <> 'silent' AND outcome <> 'retry' THEN
        PERFORM push_correction_settle(t, pause_ms);
    END IF;
    IF held_s = 0 AND outcome = 'retry' THEN
        PERFORM push_doubt(t);
    END IF;
    -- A refused silent push makes no dead letter. It is retried, in the end about once an hour.
    UPDATE push_turns x SET leased_at = NULL,
        badge = CASE WHEN outcome = 'delivered' THEN x.sent_badge WHEN outcome = 'skipped' THEN x.badge END,
        tries = CASE WHEN outcome IN ('delivered', 'skipped') THEN 0 ELSE x.tries + 1 END,
        due_at = CASE WHEN outcome NOT IN ('delivered', 'skipped') THEN clock_timestamp() + wait
                      ELSE least(push_next(t), CASE WHEN x.touched_at >= t.leased_at THEN x.touched_at + interval '500 milliseconds' END) END
    WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id);
    UPDATE devices d SET
        last_success = CASE WHEN outcome = 'delivered' THEN extract(epoch FROM now())::bigint ELSE d.last_success END,
        failing_since = CASE WHEN outcome IN ('retry', 'refused') THEN coalesce(d.failing_since, extract(epoch FROM now())::bigint) END
    WHERE (d.user_id, d.app, d.device_id) = (t.user_id, t.app, t.device_id)
      AND (outcome IN ('retry', 'refused') AND d.failing_since IS NULL
           OR outcome = 'delivered' AND (d.failing_since IS NOT NULL OR d.last_success IS DISTINCT FROM extract(epoch FROM now())::bigint));
    RETURN dead;
END $$;

-- Records the outcomes of pushes, one per entry; ignores those whose lease has expired. Deletes devices that are gone.
CREATE FUNCTION pushes_settle(users text[], apps text[], device_ids text[], leases bigint[], helds bigint[], outcomes text[], waits bigint[],
                              reasons text[], pause_ms bigint)
RETURNS TABLE (dead bigint) LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM unnest(users, apps, device_ids) AS s (user_id, app, device_id)
    JOIN devices d ON d.user_id = s.user_id AND d.app = s.app AND d.device_id = s.device_id
    ORDER BY d.user_id, d.app, d.device_id FOR UPDATE OF d;
    DELETE FROM devices d USING unnest(users, apps, device_ids, leases, outcomes) AS s (user_id, app, device_id, lease, outcome), push_turns t
    WHERE s.outcome = 'gone' AND d.user_id = s.user_id AND d.app = s.app AND d.device_id = s.device_id
      AND t.user_id = s.user_id AND t.app = s.app AND t.device_id = s.device_id AND t.lease = s.lease;
    PERFORM FROM unnest(users, apps, device_ids) AS s (user_id, app, device_id)
    JOIN push_turns t ON t.user_id = s.user_id AND t.app = s.app AND t.device_id = s.device_id
    ORDER BY t.user_id, t.app, t.device_id FOR NO KEY UPDATE OF t;
    RETURN QUERY SELECT coalesce(sum(push_turn_settle(t, s.held, s.outcome, s.wait, s.why, pause_ms)), 0)::bigint
    FROM unnest(users, apps, device_ids, leases, helds, outcomes, waits, reasons) AS s (user_id, app, device_id, lease, held, outcome, wait, why)
    JOIN push_turns t ON t.user_id = s.user_id AND t.app = s.app AND t.device_id = s.device_id AND t.lease = s.lease AND t.leased_at IS NOT NULL;
END $$;

-- Deletes at most `most` jobs that ended `keep_s` ago and of which nothing is shown, and dead letters that are `dead_keep_s` old. After
-- `shown_keep_s`, a message counts as shown no longer. Returns whether there may be more.
CREATE FUNCTION pushes_clean(keep_s bigint, shown_keep_s bigint, dead_keep_s bigint, most bigint) RETURNS TABLE (has_more boolean)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    shown_after bigint := (extract(epoch FROM now()) - shown_keep_s)::bigint * 1000000;
    forgotten bigint;
BEGIN
    IF clock_hold_us() > 0 THEN
        RETURN QUERY SELECT false;
        RETURN;
    END IF;
    UPDATE push_jobs j SET shown_ts = CASE WHEN j.shown_ts > shown_after THEN j.shown_ts END,
        summed_ts = CASE WHEN j.summed_ts > shown_after THEN j.summed_ts END
    WHERE j.ctid = ANY (ARRAY(SELECT x.ctid FROM push_jobs x WHERE x.shown_ts <= shown_after OR x.summed_ts <= shown_after
                              LIMIT most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN QUERY
    WITH gone AS (
        DELETE FROM push_jobs j WHERE j.ctid = ANY (ARRAY(
            SELECT x.ctid FROM push_jobs x
            WHERE x.due_at IS NULL AND x.shown_ts IS NULL AND x.summed_ts IS NULL
              AND x.changed_at < now() - CASE WHEN x.is_dead THEN dead_keep_s ELSE keep_s END * interval '1 second'
              AND x.changed_at < now() - least(keep_s, dead_keep_s) * interval '1 second'
            ORDER BY x.changed_at LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT count(*) = most OR forgotten = most FROM gone;
END $$;

-- The number of jobs, the age of the oldest, and the number of dead letters; each number is at most a million.
CREATE FUNCTION pushes_waiting() RETURNS TABLE (waiting bigint, oldest_s double precision, dead bigint) LANGUAGE sql STABLE AS $$
    SELECT count(*), greatest(coalesce(extract(epoch FROM now() - min(l.since)), 0), 0)::double precision, -- jobs that were put off begin later
           (SELECT count(*) FROM (SELECT 1 FROM push_jobs j WHERE j.is_dead LIMIT 1000000) d)
    FROM (SELECT j.since FROM push_jobs j WHERE j.due_at IS NOT NULL AND NOT j.is_dead LIMIT 1000000) l
$$;

CREATE FUNCTION push_job_key(j push_jobs) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT concat_ws('/', j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts) $$;

-- The dead letters of a workspace and an app (NULL: all): at most `most`, after the cursor `after`.
CREATE FUNCTION push_dead_list(of_workspace text, of_app text, after text, most bigint) RETURNS TABLE (cursor text, entry text) LANGUAGE sql STABLE AS $$
    SELECT push_job_key(j), json_build_object('workspace', j.workspace_id, 'user', j.user_id, 'app', j.app, 'device_id', j.device_id,
        'channel', j.channel_id, 'thread_ts', CASE WHEN j.thread_ts > 0 THEN ts_text(j.thread_ts) END, 'ts', ts_text(j.told_ts),
        'reason', j.reason, 'died', extract(epoch FROM j.changed_at)::bigint)::text
    FROM push_jobs j
    WHERE j.is_dead AND j.workspace_id = coalesce(of_workspace, j.workspace_id) AND j.app = coalesce(of_app, j.app)
      AND push_job_key(j) > after COLLATE "C"
    ORDER BY push_job_key(j) COLLATE "C" LIMIT most
$$;

-- The users who have dead letters.
CREATE FUNCTION push_dead_owners(of_workspace text, of_app text) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(DISTINCT j.user_id), '{}') FROM push_jobs j
    WHERE j.is_dead AND j.workspace_id = coalesce(of_workspace, j.workspace_id) AND j.app = coalesce(of_app, j.app)
$$;

-- Makes dead letters jobs again; as always, only unread messages are sent. Returns how many.
CREATE FUNCTION push_dead_retry(of_workspace text, of_app text) RETURNS TABLE (count bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
    owners text[] := push_dead_owners(of_workspace, of_app);
BEGIN
    PERFORM push_turns_add(owners);
    WITH revived AS (
        UPDATE push_jobs j SET is_dead = false, told_ts = j.told_ts - 1, due_at = clock_timestamp(), since = clock_timestamp(), changed_at = now()
        WHERE j.is_dead AND j.workspace_id = coalesce(of_workspace, j.workspace_id) AND j.app = coalesce(of_app, j.app) AND j.user_id = ANY (owners)
        RETURNING j.user_id, j.app, j.device_id
    ), turned AS (
        UPDATE push_turns t SET tries = 0, due_at = least(t.due_at, clock_timestamp()) FROM revived r
        WHERE t.user_id = r.user_id AND t.app = r.app AND t.device_id = r.device_id AND t.leased_at IS NULL
    )
    SELECT count(*) INTO push_dead_retry.count FROM revived;
    RETURN NEXT;
END $$;

-- Deletes dead letters. Returns how many.
CREATE FUNCTION push_dead_drop(of_workspace text, of_app text) RETURNS TABLE (count bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
    owners text[] := push_dead_owners(of_workspace, of_app);
BEGIN
    PERFORM push_turns_add(owners);
    WITH dropped AS (
        DELETE FROM push_jobs j
        WHERE j.is_dead AND j.workspace_id = coalesce(of_workspace, j.workspace_id) AND j.app = coalesce(of_app, j.app) AND j.user_id = ANY (owners)
        RETURNING 1
    ) SELECT count(*) INTO push_dead_drop.count FROM dropped;
    RETURN NEXT;
END $$;
