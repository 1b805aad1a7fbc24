-- SPDX-License-Identifier: Apache-2.0
-- Users' notification settings: level, quiet hours in the user's time zone, snooze.

-- A user's settings, or the defaults if they have never set any.
CREATE FUNCTION notification_settings_of(owner text) RETURNS notification_settings LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT s FROM notification_settings s WHERE s.user_id = owner),
                    ROW(owner, 'mentions', 'full', 'mentions', NULL, NULL, 'UTC', 0)::notification_settings);
END $$;

-- Whether Postgres knows a time zone. Its list may have changed since the zone was stored, as with a new release of the system.
CREATE FUNCTION timezone_is_known(name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM now() AT TIME ZONE name;
    RETURN true;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN false;
END $$;

-- Whether there are quiet hours; not if what is stored are no times of day.
CREATE FUNCTION quiet_hours_exist(s notification_settings) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(s.dnd_start ~ '^([01]\d|2[0-3]):[0-5]\d$' AND s.dnd_end ~ '^([01]\d|2[0-3]):[0-5]\d$', false) $$;

-- The current quiet hours, else the next ones; no row: there are none. Quiet hours may last beyond midnight. In an unknown time zone they
-- count as in UTC.
CREATE FUNCTION quiet_hours(s notification_settings) RETURNS TABLE (start_at timestamptz, end_at timestamptz) LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF s.dnd_start IS NULL THEN
        RETURN;
    END IF;
    IF NOT quiet_hours_exist(s) THEN
        PERFORM row_aside('quiet hours of ' || s.user_id, format('not a time of day: %s to %s', s.dnd_start, s.dnd_end));
        RETURN;
    END IF;
    IF NOT timezone_is_known(s.tz) THEN
        PERFORM row_aside('quiet hours of ' || s.user_id, 'unknown time zone ' || s.tz);
        s.tz := 'UTC';
    END IF;
    RETURN QUERY
    SELECT w.start_at, w.end_at
    FROM generate_series(-1, 1) AS n
    CROSS JOIN LATERAL (SELECT (now() AT TIME ZONE s.tz)::date + n AS day) d
    CROSS JOIN LATERAL (SELECT (d.day + s.dnd_start::time) AT TIME ZONE s.tz AS start_at,
                               (d.day + (s.dnd_end < s.dnd_start)::integer + s.dnd_end::time) AT TIME ZONE s.tz AS end_at) w
    WHERE w.end_at > now()
    ORDER BY w.start_at LIMIT 1;
END $$;

-- Whether all messages concern the user, for notifications or for the badge.
CREATE FUNCTION notification_settings_hear_all(s notification_settings) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT s.level = 'all' OR s.badge = 'all' $$;

-- Applies changed settings: notifications that were put off, what is shown, and the badge are decided again. The lock on the user makes a
-- device that is being registered have the old settings and be seen here, or have the new ones.
CREATE FUNCTION notification_settings_use(s notification_settings) RETURNS void LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM users u WHERE u.id = s.user_id FOR NO KEY UPDATE;
    PERFORM FROM devices d WHERE d.user_id = s.user_id ORDER BY d.user_id, d.app, d.device_id FOR NO KEY UPDATE;
    UPDATE devices d SET hears_all = notification_settings_hear_all(s)
    WHERE d.user_id = s.user_id AND d.hears_all <> notification_settings_hear_all(s);
    PERFORM push_recheck(s.user_id, NULL);
    UPDATE push_jobs j SET due_at = clock_timestamp(), since = clock_timestamp()
    WHERE j.user_id = s.user_id AND j.is_quiet AND greatest(j.due_at, j.since) > clock_timestamp(); -- a later message may have made it due
END $$;

-- Until when the user is not to be disturbed, in seconds since 1970; NULL: no quiet hours or snooze now.
CREATE FUNCTION dnd_until(s notification_settings) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest(CASE WHEN s.snooze_until > extract(epoch FROM now()) THEN s.snooze_until END,
                    (SELECT extract(epoch FROM q.end_at)::bigint FROM quiet_hours(s) q WHERE q.start_at <= now()))
$$;

CREATE FUNCTION notifications_reply(s notification_settings) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('level', s.level, 'preview', s.preview, 'badge', s.badge, 'dnd_start', CASE WHEN quiet_hours_exist(s) THEN s.dnd_start ELSE '' END,
        'dnd_end', CASE WHEN quiet_hours_exist(s) THEN s.dnd_end ELSE '' END, 'tz', s.tz, 'tz_unknown', CASE WHEN NOT timezone_is_known(s.tz) THEN true END,
        'dnd_until', dnd_until(s)))::text
$$;

CREATE FUNCTION notifications_get(caller text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, notifications_reply(notification_settings_of(caller))
$$;

-- Zones that browsers still give their former names, which newer systems do not know; from the file `backward` of the tz database.
CREATE FUNCTION timezone_renamed(former text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT r.name FROM (VALUES
        ('Africa/Asmera', 'Africa/Asmara'), ('America/Buenos_Aires', 'America/Argentina/Buenos_Aires'),
        ('America/Catamarca', 'America/Argentina/Catamarca'), ('America/Cordoba', 'America/Argentina/Cordoba'),
        ('America/Godthab', 'America/Nuuk'), ('America/Indianapolis', 'America/Indiana/Indianapolis'),
        ('America/Jujuy', 'America/Argentina/Jujuy'), ('America/Louisville', 'America/Kentucky/Louisville'),
        ('America/Mendoza', 'America/Argentina/Mendoza'), ('Asia/Calcutta', 'Asia/Kolkata'), ('Asia/Katmandu', 'Asia/Kathmandu'),
        ('Asia/Rangoon', 'Asia/Yangon'), ('Asia/Saigon', 'Asia/Ho_Chi_Minh'), ('Atlantic/Faeroe', 'Atlantic/Faroe'),
        ('Europe/Kiev', 'Europe/Kyiv'), ('Pacific/Enderbury', 'Pacific/Kanton'), ('Pacific/Ponape', 'Pacific/Pohnpei'),
        ('Pacific/Truk', 'Pacific/Chuuk')) AS r (former, name)
    WHERE r.former = timezone_renamed.former
$$;

-- The time zone with this name, or the one that it has been renamed to; no row: there is none. Slow: Postgres reads all of them.
CREATE FUNCTION timezone_find(of_name text) RETURNS TABLE (name text) LANGUAGE sql STABLE AS $$
    SELECT z.name FROM pg_timezone_names z
    WHERE z.name IN (of_name, timezone_renamed(of_name)) AND z.name !~ '^(posix|right)/' AND z.name NOT IN ('localtime', 'posixrules')
    ORDER BY z.name <> of_name LIMIT 1
$$;

-- NULL: unchanged. '' in both dnd_start and dnd_end: no quiet hours.
CREATE FUNCTION notifications_set(caller text, new_level text, new_preview text, new_badge text, new_start text, new_end text, new_tz text)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s notification_settings := notification_settings_of(caller);
BEGIN
    INSERT INTO notification_settings AS o (user_id, level, preview, badge, dnd_start, dnd_end, tz)
    VALUES (caller, coalesce(new_level, s.level), coalesce(new_preview, s.preview), coalesce(new_badge, s.badge), nullif(new_start, ''),
            nullif(new_end, ''), coalesce(new_tz, s.tz))
    ON CONFLICT (user_id) DO UPDATE SET level = coalesce(new_level, o.level), preview = coalesce(new_preview, o.preview),
        badge = coalesce(new_badge, o.badge), tz = coalesce(new_tz, o.tz), dnd_start = nullif(coalesce(new_start, o.dnd_start), ''),
        dnd_end = nullif(coalesce(new_end, o.dnd_end), '')
    RETURNING * INTO s;
    PERFORM notification_settings_use(s);
    RETURN QUERY SELECT NULL::text, notifications_reply(s);
END $$;

-- As in Slack's dnd.info. Only users themselves see their snooze.
CREATE FUNCTION dnd_reply(s notification_settings, is_own boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('dnd_enabled', q.start_at IS NOT NULL, 'next_dnd_start_ts', coalesce(extract(epoch FROM q.start_at)::bigint, 1),
                              'next_dnd_end_ts', coalesce(extract(epoch FROM q.end_at)::bigint, 1)) ||
        CASE WHEN NOT is_own THEN '{}' WHEN z.remaining > 0 THEN jsonb_build_object('snooze_enabled', true, 'snooze_endtime', s.snooze_until,
            'snooze_remaining', z.remaining) ELSE '{"snooze_enabled":false}' END
    FROM (SELECT s.snooze_until - extract(epoch FROM now())::bigint AS remaining) z LEFT JOIN quiet_hours(s) q ON true
$$;

CREATE FUNCTION dnd_info(workspace text, caller text, target text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN u.id IS NULL THEN 'user_not_found' END,
           CASE WHEN u.id IS NOT NULL THEN dnd_reply(notification_settings_of(u.id), u.id = caller)::text END
    FROM (SELECT 1) one LEFT JOIN users u ON u.id = target AND (u.workspace_id = workspace) IS TRUE
$$;

CREATE FUNCTION dnd_set_snooze(caller text, minutes bigint) RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s notification_settings := notification_settings_of(caller);
BEGIN
    s.snooze_until := extract(epoch FROM now())::bigint + 60 * minutes;
    INSERT INTO notification_settings AS o SELECT s.* ON CONFLICT (user_id) DO UPDATE SET snooze_until = excluded.snooze_until RETURNING o.* INTO s;
    PERFORM notification_settings_use(s);
    RETURN QUERY SELECT NULL::text, jsonb_build_object('snooze_enabled', true, 'snooze_endtime', s.snooze_until, 'snooze_remaining', 60 * minutes)::text;
END $$;

CREATE FUNCTION dnd_end_snooze(caller text) RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s notification_settings;
BEGIN
    UPDATE notification_settings n SET snooze_until = 0 WHERE n.user_id = caller AND n.snooze_until > extract(epoch FROM now()) RETURNING * INTO s;
    IF s.user_id IS NOT NULL THEN
        PERFORM notification_settings_use(s);
    END IF;
    RETURN QUERY SELECT CASE WHEN s.user_id IS NULL THEN 'snooze_not_active' END, CASE WHEN s.user_id IS NOT NULL THEN dnd_reply(s, true)::text END;
END $$;
