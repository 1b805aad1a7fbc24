-- SPDX-License-Identifier: Apache-2.0
-- A device's turn: deciding what to send it now, and recording the outcome.

-- As totals.badge of unread.sync; with `all_unread`, also all other unread messages in channels that are not muted.
CREATE FUNCTION push_badge(owner text, workspace text, all_unread boolean) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(sum(CASE WHEN r.muted THEN r.mentions WHEN r.type >= 2 OR all_unread THEN greatest(r.unread, r.mentions)
                                     ELSE r.mentions END), 0)
            FROM unread_rows r WHERE r.user_id = owner AND r.active AND r.is_open AND NOT r.is_archived)
        + (SELECT t.mention_count - t.shared_mentions FROM thread_totals(workspace, owner) t);
END $$;

-- A text as notifications show it, with mentions and links replaced by their names: 1,001 characters, of which at most 1,000 are sent.
CREATE FUNCTION push_text(body text, extra text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    shown text := left(text_shown(body, extra), 4000);
    named text[];
BEGIN
    FOR named IN SELECT DISTINCT regexp_matches(shown, '<@([UW][A-Z0-9]{1,20})(?:\|[^<>]*)?>', 'g') LOOP
        shown := regexp_replace(shown, '<@' || named[1] || '(\|[^<>]*)?>',
                                '@' || coalesce((SELECT replace(u.name, '\', '\\') FROM users u WHERE u.id = named[1]), named[1]), 'g');
    END LOOP;
    FOR named IN SELECT DISTINCT regexp_matches(shown, '<#([CGD][A-Z0-9]{1,20})>', 'g') LOOP
        shown := replace(shown, '<#' || named[1] || '>', '#' || coalesce((SELECT c.name FROM channels c WHERE c.id = named[1] AND NOT c.is_private), named[1]));
    END LOOP;
    shown := regexp_replace(shown, '<!(here|channel|everyone)(\|[^<>]*)?>', '@\1', 'g');
    shown := regexp_replace(shown, '<[^<>|]*\|([^<>]*)>', '\1', 'g');
    shown := regexp_replace(shown, '<((?:https?|mailto):[^<>]*)>', '\1', 'g');
    RETURN left(replace(replace(replace(shown, '&lt;', '<'), '&gt;', '>'), '&amp;', '&'), 1001);
END $$;

-- A member's effective notification level for a channel: all, mentions or none.
CREATE FUNCTION push_level(notify text, own_level text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE notify_level(notify) WHEN 0 THEN own_level WHEN 1 THEN 'all' WHEN 2 THEN 'mentions' ELSE 'none' END
$$;

-- Whether a message mentions a user by name, or the whole channel.
CREATE FUNCTION push_mentions(channel text, at bigint, owner text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM mentions n WHERE n.channel_id = channel AND n.ts = at AND n.user_id IN ('', owner));
END $$;

-- Whether the message that a device was last notified of in a conversation still exists and is unread.
CREATE FUNCTION push_is_unread(j push_jobs) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM messages r JOIN channel_members m ON m.channel_id = r.channel_id AND m.user_id = j.user_id
        LEFT JOIN thread_members t ON t.channel_id = r.channel_id AND t.thread_ts = j.thread_ts AND t.user_id = j.user_id
        WHERE r.channel_id = j.channel_id AND r.ts = j.told_ts AND NOT r.deleted AND m.active
          AND CASE WHEN j.thread_ts = 0 THEN r.ts > m.ts AND NOT (m.singles > 0 AND is_read_singly(r.channel_id, j.user_id, r.ts))
                   ELSE r.ts > t.ts END);
END $$;

-- The newest message of a conversation to notify the device's owner of; NULL: there is none. Messages up to the cursor, and singles, are
-- read.
CREATE FUNCTION push_message(j push_jobs, own_level text) RETURNS messages LANGUAGE plpgsql STABLE AS $$
DECLARE
    m channel_members := (SELECT x FROM channel_members x WHERE x.channel_id = j.channel_id AND x.user_id = j.user_id);
    c channels := (SELECT x FROM channels x WHERE x.id = j.channel_id);
    level text := push_level(m.notify, own_level);
    hears_all boolean := level <> 'none' AND NOT m.muted AND (level = 'all' OR c.people IS NOT NULL);
    read_ts bigint;
    found messages;
BEGIN
    IF m.active IS NOT TRUE OR c.is_archived OR level = 'none' THEN
        RETURN NULL;
    END IF;
    IF j.thread_ts <> 0 THEN
        SELECT t.ts INTO read_ts FROM thread_members t
        WHERE t.channel_id = j.channel_id AND t.thread_ts = j.thread_ts AND t.user_id = j.user_id AND t.following;
        SELECT r.* INTO found FROM messages r
        WHERE r.channel_id = j.channel_id AND r.thread_ts = j.thread_ts AND r.ts > greatest(read_ts, j.told_ts) AND NOT r.deleted
          AND r.user_id <> j.user_id AND (NOT m.muted OR push_mentions(r.channel_id, r.ts, j.user_id))
          -- otherwise the channel's job covers it
          AND NOT (r.counted AND (r.ts <= m.ts OR hears_all OR push_mentions(r.channel_id, r.ts, j.user_id))) AND read_ts IS NOT NULL
        ORDER BY r.ts DESC LIMIT 1;
    ELSIF hears_all THEN
        SELECT r.* INTO found FROM messages r
        WHERE r.channel_id = j.channel_id AND r.ts > greatest(m.ts, j.told_ts) AND r.counted AND NOT r.deleted AND r.user_id <> j.user_id
          AND NOT (m.singles > 0 AND is_read_singly(r.channel_id, j.user_id, r.ts))
        ORDER BY r.ts DESC LIMIT 1;
    ELSE
        SELECT r.* INTO found FROM mentions n JOIN messages r ON r.channel_id = n.channel_id AND r.ts = n.ts
        WHERE n.channel_id = j.channel_id AND n.user_id IN ('', j.user_id) AND n.ts > greatest(m.ts, j.told_ts) AND n.counted AND n.author <> j.user_id
          AND NOT r.deleted AND NOT (m.singles > 0 AND is_read_singly(r.channel_id, j.user_id, r.ts))
        ORDER BY n.ts DESC LIMIT 1;
    END IF;
    RETURN found;
END $$;

-- The texts of a push for a message; `shows`: full, sender (without the message's text) or none.
CREATE FUNCTION push_words(found messages, shows text, OUT title text, OUT subtitle text, OUT body text) LANGUAGE plpgsql STABLE AS $$
DECLARE
    c channels := (SELECT x FROM channels x WHERE x.id = found.channel_id);
    author text;
BEGIN
    IF shows = 'none' THEN
        title := 'New message';
        RETURN;
    END IF;
    author := coalesce(NULLIF(found.extra::jsonb ->> 'username', ''),
                       (SELECT coalesce(NULLIF(u.real_name, ''), u.name) FROM users u WHERE u.id = found.user_id), found.user_id);
    title := CASE WHEN c.people IS NULL THEN '#' || c.name ELSE author END;
    subtitle := CASE WHEN c.people IS NULL THEN author END;
    body := CASE WHEN shows = 'full' THEN NULLIF(push_text(found.body, found.extra), '') END;
    body := coalesce(body, 'New message');
END $$;

-- The more private of two previews.
CREATE FUNCTION push_preview(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN 'none' IN (a, b) THEN 'none' WHEN 'sender' IN (a, b) THEN 'sender' ELSE 'full' END
$$;

-- The current position for events.sync: src/gateway/position.h.
CREATE FUNCTION push_position() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws('.', 'e1', x.xmin, x.xmin, extract(epoch FROM now())::bigint, (SELECT max(e.number) FROM eras e))
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin) x
$$;

-- Ends a job up to `upto`: the owner was notified (`is_told`), or need not be. The conversation then rests for `rest_ms`, so that a burst
-- makes one push. `is_doubted`: the message may have been read or deleted while its push was in flight.
CREATE FUNCTION push_job_end(j push_jobs, upto bigint, is_told boolean, rest_ms bigint, is_doubted boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_jobs x SET told_ts = greatest(x.told_ts, upto), is_quiet = false, changed_at = now(), is_shown = x.is_shown OR is_told,
        rests_until = clock_timestamp() + rest_ms * interval '1 millisecond',
        due_at = CASE WHEN x.ts > upto THEN greatest(x.due_at, clock_timestamp() + rest_ms * interval '1 millisecond')
                      WHEN is_doubted THEN clock_timestamp() + interval '400 milliseconds' END,
        since = CASE WHEN x.ts > upto THEN x.since WHEN is_doubted THEN clock_timestamp() END
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
END $$;

-- Gives a job up: it becomes a dead letter.
CREATE FUNCTION push_job_kill(j push_jobs, upto bigint, why text) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT push_job_end(j, upto, false, 0);

    UPDATE push_jobs x SET is_dead = true, reason = why
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts)
$$;

-- The name of a conversation in a summary; NULL: it must not be shown.
CREATE FUNCTION push_name(channel text, owner text, shows text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN shows = 'none' THEN NULL WHEN c.people IS NULL THEN '#' || c.name
                ELSE (SELECT string_agg(coalesce(NULLIF(u.real_name, ''), u.name), ' & ' ORDER BY u.name) FROM users u
                      WHERE u.id = ANY (string_to_array(c.people, ',')) AND u.id <> owner) END
    FROM channels c WHERE c.id = channel
$$;

CREATE VIEW push_rows AS
    SELECT ''::text AS workspace, ''::text AS user_id, ''::text AS app, ''::text AS device_id, 0::bigint AS lease, ''::text AS platform,
           ''::text AS fields, ''::text AS secret, ''::text AS address, 0::bigint AS registered, 0::bigint AS tries, ''::text AS channel,
           0::bigint AS thread_ts, 0::bigint AS ts, 0::bigint AS seq, 0::bigint AS happened_us, 0::bigint AS ttl_s, ''::text AS kind,
           ''::text AS title, ''::text AS subtitle, ''::text AS body, 0::bigint AS badge, 0::bigint AS told_badge, ''::text AS position,
           0::bigint AS died;

-- Decides what to send to a device now. `kind` NULL: nothing, and its turn is over. `died`: the number of jobs that were not sent in time.
-- The caller holds the turn's lock.
CREATE FUNCTION push_decide(t push_turns, shows text, ttl_s bigint) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s notification_settings := notification_settings_of(t.user_id);
    quiet_until timestamptz := CASE WHEN s.snooze_until > 0 OR s.dnd_start IS NOT NULL THEN to_timestamp(dnd_until(s)) END;
    is_active boolean := (SELECT u.active FROM users u WHERE u.id = t.user_id);
    withdraws boolean := false;
    j push_jobs;
    found messages;
    r push_rows;
BEGIN
    r.workspace := t.workspace_id;
    r.user_id := t.user_id;
    r.app := t.app;
    r.device_id := t.device_id;
    r.tries := t.tries;
    r.told_badge := t.badge;
    r.thread_ts := 0;
    r.channel := '';
    r.ts := 0;
    r.seq := 0;
    r.happened_us := 0;
    r.ttl_s := ttl_s;
    r.died := 0;
    FOR j IN SELECT x.* FROM push_jobs x
             WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id) AND x.due_at <= clock_timestamp()
             ORDER BY x.since LIMIT 100 LOOP
        found := CASE WHEN is_active THEN push_message(j, s.level) END;
        IF found.ts IS NULL THEN
            PERFORM push_job_end(j, j.ts, false, 0);
            IF j.is_shown AND r.title IS NULL AND NOT push_is_unread(j) THEN -- the device withdraws the notification
                UPDATE push_jobs x SET is_shown = false
                WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
                withdraws := true;
                r.channel := j.channel_id;
                r.thread_ts := j.thread_ts;
                r.ts := j.told_ts;
            END IF;
        ELSIF quiet_until IS NOT NULL THEN
            UPDATE push_jobs x SET due_at = quiet_until, since = quiet_until, is_quiet = true
            WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
        ELSIF j.since < now() - ttl_s * interval '1 second' THEN
            PERFORM push_job_kill(j, found.ts, coalesce(j.reason, 'not sent in time'));
            r.died := r.died + 1;
        ELSIF r.kind IS NULL THEN
            r.kind := CASE WHEN j.is_quiet THEN 'summary' ELSE 'message' END;
            SELECT w.* INTO r.title, r.subtitle, r.body FROM push_words(found, push_preview(shows, s.preview)) w;
            r.channel := j.channel_id;
            r.thread_ts := j.thread_ts;
            r.ts := found.ts;
            r.seq := found.seq;
            r.happened_us := CASE WHEN j.is_quiet THEN 0 ELSE found.ts END;
            r.ttl_s := greatest(ttl_s - greatest(extract(epoch FROM now() - j.since), 0)::bigint, 1);
            EXIT WHEN NOT j.is_quiet;
        ELSIF j.is_quiet AND r.title IS NOT NULL THEN -- another conversation of the summary
            r.title := 'New messages';
            r.subtitle := NULL;
            r.body := concat_ws(', ', CASE WHEN r.channel <> '' THEN push_name(r.channel, r.user_id, push_preview(shows, s.preview)) ELSE r.body END,
                                push_name(j.channel_id, j.user_id, push_preview(shows, s.preview)));
            r.channel := '';
            r.thread_ts := 0;
            r.ts := 0;
        END IF;
    END LOOP;
    r.badge := push_badge(t.user_id, t.workspace_id, s.badge = 'all');
    IF r.kind IS NULL AND NOT is_active THEN
        RETURN NULL;
    END IF;
    IF r.kind IS NULL AND (withdraws OR r.badge IS DISTINCT FROM t.badge) THEN
        r.kind := 'silent';
    END IF;
    RETURN CASE WHEN r.kind IS NOT NULL THEN r END;
END $$;

-- Decides a device's turn, which the caller has locked, and leases it if there is something to send.
CREATE FUNCTION push_turn_take(t push_turns, lease_ms bigint, ttl_s bigint) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    d record;
    r push_rows;
BEGIN
    SELECT v.address, v.created, v.preview, a.platform, a.fields::text AS fields, a.secret INTO d
    FROM devices v JOIN push_apps a ON a.workspace_id = v.workspace_id AND a.name = v.app
    WHERE (v.user_id, v.app, v.device_id) = (t.user_id, t.app, t.device_id);
    IF t.leased_at IS NOT NULL THEN -- to an instance that did not settle it, so its push may have arrived
        t.badge := NULL;
        UPDATE push_jobs j SET is_shown = true WHERE (j.user_id, j.app, j.device_id) = (t.user_id, t.app, t.device_id) AND j.due_at <= t.leased_at;
    END IF;
    r := push_decide(t, d.preview, ttl_s);
    UPDATE push_turns x SET lease = x.lease + 1, leased_at = CASE WHEN r.kind IS NOT NULL THEN clock_timestamp() END,
        tries = CASE WHEN r.kind IS NOT NULL THEN x.tries ELSE 0 END,
        due_at = CASE WHEN r.kind IS NOT NULL THEN clock_timestamp() + lease_ms * interval '1 millisecond' ELSE push_next(t) END
    WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id);
    IF r.kind IS NOT NULL THEN
        r.lease := t.lease + 1;
        r.platform := d.platform;
        r.fields := d.fields;
        r.secret := d.secret;
        r.address := d.address;
        r.registered := d.created;
    END IF;
    RETURN r;
END $$;

-- The time until the next attempt of a turn after `tries` failed ones.
CREATE FUNCTION push_wait(tries bigint) RETURNS interval LANGUAGE sql VOLATILE AS
$$ SELECT least(100 * 4 ^ least(tries, 10), 3600000) * (0.5 + random()) * interval '1 millisecond' $$;

-- Makes dead letters of the due jobs that fail, and of those that have waited `ttl_s`. Returns their number.
CREATE FUNCTION push_jobs_try(t push_turns, ttl_s bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    j push_jobs;
    died bigint := 0;
BEGIN
    FOR j IN SELECT x.* FROM push_jobs x
             WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id) AND x.due_at <= clock_timestamp() LOOP
        BEGIN
            PERFORM push_words(push_message(j, (notification_settings_of(t.user_id)).level), 'full');
            CONTINUE WHEN j.since > now() - ttl_s * interval '1 second';
            PERFORM push_job_kill(j, j.ts, 'not sent in time');
        EXCEPTION WHEN lock_not_available OR transaction_rollback OR insufficient_resources THEN
            RAISE;
        WHEN OTHERS THEN
            PERFORM row_aside('push job ' || push_job_key(j), SQLERRM), push_job_kill(j, j.ts, SQLERRM);
        END;
        died := died + 1;
    END LOOP;
    RETURN died;
END $$;

-- As push_turn_take(), but if that fails, the jobs at fault die, else the turn has to wait.
CREATE FUNCTION push_turn_try(t push_turns, lease_ms bigint, ttl_s bigint) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r push_rows;
BEGIN
    RETURN push_turn_take(t, lease_ms, ttl_s);
EXCEPTION WHEN lock_not_available OR transaction_rollback OR insufficient_resources THEN
    RAISE;
WHEN OTHERS THEN
    PERFORM row_aside(format('push to %s/%s/%s', t.user_id, t.app, t.device_id), SQLERRM);
    r.died := push_jobs_try(t, ttl_s);
    UPDATE push_turns x SET tries = x.tries + 1, due_at = clock_timestamp() + push_wait(x.tries)
    WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id);
    RETURN r;
END $$;

-- Leases at most `most` devices whose turn it is to the caller for `lease_ms`, with what to send to each. Each app gets at most
-- `app_parallel`, minus what the caller has in flight for it (`busy`: "T1/app" of each). Apps take turns, so that one whose provider hangs
-- leaves room for the others. `is_careful`: after this failed as a whole, each turn is tried alone, so that a bad row holds up nobody else.
CREATE FUNCTION pushes_take(busy text[], app_parallel bigint, most bigint, lease_ms bigint, ttl_s bigint, is_careful boolean) RETURNS SETOF push_rows
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    place text := push_position();
    t push_turns;
    r push_rows;
BEGIN
    FOR t IN
        WITH RECURSIVE apps AS ( -- apps with something to do now or later, by one index lookup for each
            (SELECT x.workspace_id, x.app FROM push_turns x WHERE x.due_at IS NOT NULL ORDER BY x.workspace_id, x.app LIMIT 1)
            UNION ALL
            SELECT n.workspace_id, n.app FROM apps a
            CROSS JOIN LATERAL (SELECT x.workspace_id, x.app FROM push_turns x
                                WHERE x.due_at IS NOT NULL AND (x.workspace_id, x.app) > (a.workspace_id, a.app)
                                ORDER BY x.workspace_id, x.app LIMIT 1) n
        ), turns AS MATERIALIZED (
            SELECT q.user_id, q.app, q.device_id
            FROM apps a
            LEFT JOIN (SELECT b.app, count(*) AS n FROM unnest(busy) AS b (app) GROUP BY b.app) b ON b.app = a.workspace_id || '/' || a.app
            CROSS JOIN LATERAL (
                SELECT x.user_id, x.app, x.device_id, row_number() OVER (ORDER BY x.due_at) AS n FROM push_turns x
                WHERE x.workspace_id = a.workspace_id AND x.app = a.app AND x.due_at <= clock_timestamp()
                ORDER BY x.due_at LIMIT greatest(app_parallel - coalesce(b.n, 0), 0)) q
            ORDER BY coalesce(b.n, 0) + q.n, random() LIMIT most
        )
        SELECT x.* FROM turns q JOIN push_turns x ON x.user_id = q.user_id AND x.app = q.app AND x.device_id = q.device_id
        WHERE x.due_at <= clock_timestamp() FOR NO KEY UPDATE OF x SKIP LOCKED
    LOOP
        r := CASE WHEN is_careful THEN push_turn_try(t, lease_ms, ttl_s) ELSE push_turn_take(t, lease_ms, ttl_s) END;
        r.position := place;
        IF r.kind IS NOT NULL OR r.died > 0 THEN
            RETURN NEXT r;
        END IF;
    END LOOP;
END $$;

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

-- Records the outcome of one push. `wait_ms`: time until the next attempt; 0: longer with each attempt. Returns the number of dead letters
-- made.
CREATE FUNCTION push_turn_settle(t push_turns, channel text, thread bigint, ts bigint, kind text, badge bigint, outcome text, wait_ms bigint,
                                 why text, pause_ms bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    j push_jobs;
    upto bigint; -- the last message that the push covered
    dead bigint := 0;
    wait interval := CASE WHEN wait_ms > 0 THEN wait_ms * interval '1 millisecond' ELSE push_wait(t.tries) END;
BEGIN
    IF kind <> 'silent' THEN
        FOR j IN SELECT x.* FROM push_jobs x
                 WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id)
                   AND CASE WHEN kind = 'summary' THEN x.is_quiet AND x.since <= t.leased_at ELSE x.channel_id = channel AND x.thread_ts = thread END LOOP
            upto := CASE WHEN kind = 'summary' THEN least(j.ts, extract(epoch FROM t.leased_at)::numeric * 1000000) ELSE push_turn_settle.ts END;
            IF outcome = 'delivered' THEN
                PERFORM push_job_end(j, CASE WHEN j.edited_ts = upto AND j.edited_at >= t.leased_at THEN upto - 1 ELSE upto END, true, pause_ms,
                                     t.touched_at >= t.leased_at);
            ELSIF outcome = 'skipped' THEN
                PERFORM push_job_end(j, upto, false, 0);
            ELSIF outcome = 'refused' THEN
                PERFORM push_job_kill(j, upto, why);
                dead := dead + 1;
            ELSE
                UPDATE push_jobs x SET reason = why, is_shown = true -- in case only the answer was lost
                WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
            END IF;
        END LOOP;
    END IF;
    -- A refused silent push makes no dead letter. It is retried, in the end about once an hour.
    UPDATE push_turns x SET leased_at = NULL,
        badge = CASE WHEN outcome = 'delivered' THEN push_turn_settle.badge WHEN outcome = 'skipped' THEN x.badge END,
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
CREATE FUNCTION pushes_settle(users text[], apps text[], device_ids text[], leases bigint[], channels text[], threads bigint[], tss bigint[],
                              kinds text[], badges bigint[], outcomes text[], waits bigint[], reasons text[], pause_ms bigint)
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
    RETURN QUERY SELECT coalesce(sum(push_turn_settle(t, s.channel, s.thread, s.ts, s.kind, s.badge, s.outcome, s.wait, s.why, pause_ms)), 0)::bigint
    FROM unnest(users, apps, device_ids, leases, channels, threads, tss, kinds, badges, outcomes, waits, reasons)
        AS s (user_id, app, device_id, lease, channel, thread, ts, kind, badge, outcome, wait, why)
    JOIN push_turns t ON t.user_id = s.user_id AND t.app = s.app AND t.device_id = s.device_id AND t.lease = s.lease AND t.leased_at IS NOT NULL;
END $$;

-- Deletes at most `most` jobs that ended `keep_s` ago, and dead letters that are `dead_keep_s` old. Returns whether there may be more.
CREATE FUNCTION pushes_clean(keep_s bigint, dead_keep_s bigint, most bigint) RETURNS TABLE (has_more boolean) LANGUAGE sql VOLATILE AS $$
    WITH gone AS (
        DELETE FROM push_jobs j WHERE j.ctid = ANY (ARRAY(
            SELECT x.ctid FROM push_jobs x
            WHERE x.due_at IS NULL AND (SELECT clock_hold_us()) = 0 AND x.changed_at < now() - CASE WHEN x.is_dead THEN dead_keep_s ELSE keep_s END * interval '1 second'
              AND x.changed_at < now() - least(keep_s, dead_keep_s) * interval '1 second'
            ORDER BY x.changed_at LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT count(*) = most FROM gone
$$;

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
