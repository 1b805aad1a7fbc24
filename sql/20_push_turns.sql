-- SPDX-License-Identifier: Apache-2.0
-- A device's turn: deciding what to send it now. A push rings (it is about messages that the device has not been
-- told of), corrects what the screen shows (a replacement, a withdrawal), or only sets the badge.

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

-- The newest message of a conversation after `above` and up to `upto` to notify the device's owner of; NULL: there is none. Messages up to
-- the cursor, and singles, are read. `own_level` NULL: the owner is deactivated.
CREATE FUNCTION push_message(j push_jobs, own_level text, above bigint, upto bigint) RETURNS messages LANGUAGE plpgsql STABLE AS $$
DECLARE
    m channel_members := (SELECT x FROM channel_members x WHERE x.channel_id = j.channel_id AND x.user_id = j.user_id);
    c channels := (SELECT x FROM channels x WHERE x.id = j.channel_id);
    level text := push_level(m.notify, own_level);
    hears_all boolean := level <> 'none' AND NOT m.muted AND (level = 'all' OR c.people IS NOT NULL);
    read_ts bigint;
    found messages;
BEGIN
    IF own_level IS NULL OR m.active IS NOT TRUE OR c.is_archived OR level = 'none'
       OR m.closed_ord >= (SELECT h.ord FROM channel_heads h WHERE h.id = j.channel_id AND m.closed_ord IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    IF j.thread_ts <> 0 THEN
        SELECT t.ts INTO read_ts FROM thread_members t
        WHERE t.channel_id = j.channel_id AND t.thread_ts = j.thread_ts AND t.user_id = j.user_id AND t.following;
        SELECT r.* INTO found FROM messages r
        WHERE r.channel_id = j.channel_id AND r.thread_ts = j.thread_ts AND r.ts > greatest(read_ts, above) AND r.ts <= upto AND NOT r.deleted
          AND r.user_id <> j.user_id AND (NOT m.muted OR push_mentions(r.channel_id, r.ts, j.user_id))
          -- otherwise the channel's job covers it
          AND NOT (r.counted AND (r.ts <= m.ts OR hears_all OR push_mentions(r.channel_id, r.ts, j.user_id))) AND read_ts IS NOT NULL
        ORDER BY r.ts DESC LIMIT 1;
    ELSIF hears_all THEN
        SELECT r.* INTO found FROM messages r
        WHERE r.channel_id = j.channel_id AND r.ts > greatest(m.ts, above) AND r.ts <= upto AND r.counted AND NOT r.deleted AND r.user_id <> j.user_id
          AND NOT (m.singles > 0 AND is_read_singly(r.channel_id, j.user_id, r.ts))
        ORDER BY r.ts DESC LIMIT 1;
    ELSE
        SELECT r.* INTO found FROM mentions n JOIN messages r ON r.channel_id = n.channel_id AND r.ts = n.ts
        WHERE n.channel_id = j.channel_id AND n.user_id IN ('', j.user_id) AND n.ts > greatest(m.ts, above) AND n.ts <= upto AND n.counted
          AND n.author <> j.user_id AND NOT r.deleted AND NOT (m.singles > 0 AND is_read_singly(r.channel_id, j.user_id, r.ts))
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

CREATE FUNCTION push_digest(title text, subtitle text, body text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT hashtextextended(concat_ws(E'\n', title, subtitle, body), 0) $$;

-- Ends a job up to `upto`, with the notification that the device shows now (NULL: as before). The conversation then rests for `rest_ms`, so
-- that a burst makes one push.
CREATE FUNCTION push_job_end(j push_jobs, upto bigint, rest_ms bigint, shown bigint DEFAULT NULL, digest bigint DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_jobs x SET told_ts = greatest(x.told_ts, upto), is_quiet = false, is_held = false, changed_at = now(),
        shown_ts = coalesce(shown, x.shown_ts), shown_digest = CASE WHEN shown IS NULL THEN x.shown_digest ELSE digest END,
        rests_until = clock_timestamp() + rest_ms * interval '1 millisecond',
        due_at = CASE WHEN x.ts > upto THEN greatest(x.due_at, clock_timestamp() + rest_ms * interval '1 millisecond') END,
        since = CASE WHEN x.ts > upto THEN x.since END
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
END $$;

-- Gives a job up: it becomes a dead letter.
CREATE FUNCTION push_job_kill(j push_jobs, upto bigint, why text) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT push_job_end(j, upto, 0);

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
           0::bigint AS died, 0::bigint AS digest;

-- A push to a device that says nothing yet.
CREATE FUNCTION push_row(t push_turns, ttl_s bigint) RETURNS push_rows LANGUAGE plpgsql STABLE AS $$
DECLARE
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
    RETURN r;
END $$;

-- The push `r`, about a message of a job's conversation.
CREATE FUNCTION push_put(r push_rows, j push_jobs, about messages, of_kind text, shows text) RETURNS push_rows LANGUAGE plpgsql STABLE AS $$
DECLARE
    put push_rows := r;
BEGIN
    put.kind := of_kind;
    SELECT w.* INTO put.title, put.subtitle, put.body FROM push_words(about, shows) w;
    put.digest := push_digest(put.title, put.subtitle, put.body);
    put.channel := j.channel_id;
    put.thread_ts := j.thread_ts;
    put.ts := about.ts;
    put.seq := about.seq;
    RETURN put;
END $$;

-- The push `r`, about all conversations that its device's summary speaks of; with a `ts` of NULL if there is none.
CREATE FUNCTION push_put_summary(r push_rows, of_kind text, shows text) RETURNS push_rows LANGUAGE plpgsql STABLE AS $$
DECLARE
    put push_rows := r;
BEGIN
    put.kind := of_kind;
    put.title := 'New messages';
    put.subtitle := NULL;
    put.channel := '';
    put.thread_ts := 0;
    put.seq := 0;
    SELECT string_agg(DISTINCT n.name, ', ' ORDER BY n.name), max(n.summed_ts) INTO put.body, put.ts
    FROM (SELECT push_name(x.channel_id, x.user_id, shows) AS name, x.summed_ts FROM push_jobs x
          WHERE (x.user_id, x.app, x.device_id) = (r.user_id, r.app, r.device_id) AND x.summed_ts IS NOT NULL) n;
    put.digest := push_digest(put.title, put.subtitle, put.body);
    RETURN put;
END $$;

-- The push `r` if a conversation's notification, if any, is what it should be, else one that corrects it: it becomes the newest message up to
-- it to notify the owner of, in its present words, or is withdrawn.
CREATE FUNCTION push_check(r push_rows, j push_jobs, own_level text, shows text) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found messages;
    put push_rows;
BEGIN
    UPDATE push_jobs x SET check_at = NULL
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
    IF j.summed_ts IS NOT NULL THEN
        PERFORM push_sum(j, (push_message(j, own_level, coalesce(j.shown_ts, 0), j.summed_ts)).ts);
    END IF;
    IF j.shown_ts IS NULL THEN
        RETURN r;
    END IF;
    found := push_message(j, own_level, 0, j.shown_ts);
    IF found.ts IS NOT NULL THEN
        put := push_put(r, j, found, 'replacement', shows);
        RETURN CASE WHEN (put.ts, put.digest) = (j.shown_ts, j.shown_digest) THEN r ELSE put END;
    END IF;
    put := r;
    put.kind := 'withdrawal';
    put.channel := j.channel_id;
    put.thread_ts := j.thread_ts;
    put.ts := j.shown_ts;
    RETURN put;
END $$;

-- From now on the summary speaks of a conversation's messages up to `upto`; NULL: no longer.
CREATE FUNCTION push_sum(j push_jobs, upto bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE push_jobs x SET summed_ts = upto
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
    IF upto IS NULL THEN
        UPDATE push_jobs x SET check_at = clock_timestamp()
        WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, '', 0);
    END IF;
END $$;

-- As push_check(), of the summary.
CREATE FUNCTION push_check_summary(r push_rows, shows text) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    j push_jobs;
    put push_rows;
BEGIN
    UPDATE push_jobs x SET check_at = NULL
    WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (r.user_id, r.app, r.device_id, '', 0) AND x.check_at <= clock_timestamp()
    RETURNING * INTO j;
    IF j.shown_ts IS NULL THEN
        RETURN r;
    END IF;
    put := push_put_summary(r, 'replacement', shows);
    IF put.ts IS NULL THEN
        put := r;
        put.kind := 'withdrawal';
        put.ts := j.shown_ts;
    ELSIF put.digest = j.shown_digest THEN
        RETURN r;
    END IF;
    RETURN put;
END $$;

-- Decides what to send to a device now. `kind` NULL: nothing, and its turn is over. `died`: the number of jobs that were not sent in time.
-- The caller holds the turn's lock.
CREATE FUNCTION push_decide(t push_turns, shows text, ttl_s bigint) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s notification_settings := notification_settings_of(t.user_id);
    quiet_until timestamptz := CASE WHEN s.snooze_until > 0 OR s.dnd_start IS NOT NULL THEN to_timestamp(dnd_until(s)) END;
    level text := (SELECT s.level FROM users u WHERE u.id = t.user_id AND u.active);
    preview text := push_preview(shows, s.preview);
    j push_jobs;
    first push_jobs; -- of what was put off to the end of quiet hours
    is_due boolean;
    found messages;
    r push_rows := push_row(t, ttl_s);
BEGIN
    FOR j IN SELECT x.* FROM push_jobs x
             WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id) AND x.channel_id <> ''
               AND (x.due_at <= clock_timestamp() OR x.check_at <= clock_timestamp())
             ORDER BY x.since LIMIT 100 LOOP
        is_due := coalesce(j.due_at <= clock_timestamp(), false);
        found := CASE WHEN is_due THEN push_message(j, level, j.told_ts, 9223372036854775807) END;
        IF found.ts IS NULL THEN
            IF is_due THEN
                PERFORM push_job_end(j, j.ts, 0);
            END IF;
        ELSIF quiet_until IS NOT NULL THEN
            UPDATE push_jobs x SET due_at = quiet_until, since = quiet_until, is_quiet = true
            WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
        ELSIF j.since < now() - ttl_s * interval '1 second' THEN
            PERFORM push_job_kill(j, found.ts, coalesce(j.reason, 'not sent in time'));
            r.died := r.died + 1;
        ELSIF r.kind IS NULL THEN
            r := push_put(r, j, found, 'message', preview);
            r.happened_us := CASE WHEN j.is_quiet OR j.is_held THEN 0 ELSE found.ts END;
            r.ttl_s := greatest(ttl_s - greatest(extract(epoch FROM now() - j.since), 0)::bigint, 1);
            first := CASE WHEN j.is_quiet THEN j END;
        ELSIF j.is_quiet THEN -- and so was the first
            IF r.kind = 'message' THEN
                PERFORM push_sum(first, r.ts);
                r.kind := 'summary';
            END IF;
            PERFORM push_sum(j, found.ts);
        END IF;
        IF r.kind IS NULL AND j.check_at <= clock_timestamp() THEN
            r := push_check(r, j, level, preview);
        END IF;
        EXIT WHEN r.kind IS NOT NULL AND first.ts IS NULL;
    END LOOP;
    IF r.kind IS NULL THEN
        r := push_check_summary(r, preview);
    ELSIF r.kind = 'summary' THEN
        r := push_put_summary(r, 'summary', preview);
    END IF;
    r.badge := CASE WHEN level IS NOT NULL THEN push_badge(t.user_id, t.workspace_id, s.badge = 'all') ELSE 0 END;
    IF r.kind IS NULL AND r.badge IS DISTINCT FROM t.badge THEN
        r.kind := 'silent';
    END IF;
    RETURN r;
END $$;

-- Notes that the last push to a device may have arrived, or may not. What it corrected is checked again.
CREATE FUNCTION push_doubt(t push_turns) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF t.sent_kind = 'summary' THEN
        PERFORM push_summary_show(t, NULL);
    ELSIF t.sent_kind <> 'silent' THEN
        UPDATE push_jobs x SET shown_digest = NULL, shown_ts = CASE WHEN t.sent_kind = 'withdrawal' THEN x.shown_ts ELSE greatest(x.shown_ts, t.sent_ts) END,
            check_at = CASE WHEN t.sent_kind = 'message' THEN x.check_at ELSE clock_timestamp() END
        WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (t.user_id, t.app, t.device_id, t.sent_channel, t.sent_thread);
    END IF;
END $$;

-- The summary shows what was sent last; `digest` NULL: perhaps.
CREATE FUNCTION push_summary_show(t push_turns, digest bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO push_jobs AS x (user_id, app, device_id, channel_id, thread_ts, workspace_id, ts, told_ts, shown_ts, shown_digest)
    VALUES (t.user_id, t.app, t.device_id, '', 0, t.workspace_id, 0, 0, t.sent_ts, digest)
    ON CONFLICT (user_id, app, device_id, channel_id, thread_ts) DO UPDATE SET shown_ts = greatest(x.shown_ts, excluded.shown_ts),
        shown_digest = excluded.shown_digest, changed_at = now();
END $$;

-- Decides a device's turn, which the caller has locked, and leases it if there is something to send.
CREATE FUNCTION push_turn_take(t push_turns, lease_ms bigint, ttl_s bigint) RETURNS push_rows LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    d record;
    r push_rows;
BEGIN
    SELECT v.address, v.created, v.preview, a.platform, a.fields::text AS fields, a.secret INTO d
    FROM devices v JOIN push_apps a ON a.workspace_id = v.workspace_id AND a.name = v.app
    WHERE (v.user_id, v.app, v.device_id) = (t.user_id, t.app, t.device_id)
    FOR KEY SHARE OF v SKIP LOCKED; -- devices come before turns in the order of locks, and a job changed twice locks its device
    IF NOT FOUND THEN
        RETURN r;
    END IF;
    IF t.leased_at IS NOT NULL THEN -- to an instance that did not settle it, so its push may have arrived
        t.badge := NULL;
        PERFORM push_doubt(t);
    END IF;
    r := push_decide(t, d.preview, ttl_s);
    UPDATE push_turns x SET lease = x.lease + 1, leased_at = CASE WHEN r.kind IS NOT NULL THEN clock_timestamp() END,
        tries = CASE WHEN r.kind IS NOT NULL THEN x.tries ELSE 0 END,
        due_at = CASE WHEN r.kind IS NOT NULL THEN clock_timestamp() + lease_ms * interval '1 millisecond' ELSE push_next(t) END,
        sent_kind = r.kind, sent_channel = r.channel, sent_thread = r.thread_ts, sent_ts = r.ts, sent_digest = r.digest, sent_badge = r.badge
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

-- Makes dead letters of the due jobs that fail, and of those that have waited `ttl_s`; what they show is forgotten. Returns their number.
CREATE FUNCTION push_jobs_try(t push_turns, ttl_s bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    level text := (notification_settings_of(t.user_id)).level;
    j push_jobs;
    died bigint := 0;
BEGIN
    FOR j IN SELECT x.* FROM push_jobs x
             WHERE (x.user_id, x.app, x.device_id) = (t.user_id, t.app, t.device_id) AND x.channel_id <> ''
               AND (x.due_at <= clock_timestamp() OR x.check_at <= clock_timestamp()) LOOP
        BEGIN
            PERFORM push_words(push_message(j, level, j.told_ts, 9223372036854775807), 'full'), push_words(push_message(j, level, 0, j.shown_ts), 'full');
            CONTINUE WHEN j.due_at IS NULL OR j.since > now() - ttl_s * interval '1 second';
            PERFORM push_job_kill(j, j.ts, 'not sent in time');
        EXCEPTION WHEN lock_not_available OR transaction_rollback OR insufficient_resources THEN
            RAISE;
        WHEN OTHERS THEN
            PERFORM row_aside('push job ' || push_job_key(j), SQLERRM), push_job_kill(j, j.ts, SQLERRM);
            UPDATE push_jobs x SET check_at = NULL, shown_ts = NULL, summed_ts = NULL
            WHERE (x.user_id, x.app, x.device_id, x.channel_id, x.thread_ts) = (j.user_id, j.app, j.device_id, j.channel_id, j.thread_ts);
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
