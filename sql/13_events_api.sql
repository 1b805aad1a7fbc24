-- SPDX-License-Identifier: Apache-2.0
-- Events for apps: the queue for events_url and for app sockets (Socket Mode), and their attempts.

-- Stores events, each once, for apps whose bot has been in the channel since before the event, as long as there is room: for apps with a
-- URL, and for apps that had a socket within `app_socket_keep_s`. For the latter an event is due after `app_socket_wait_ms`, which gives open
-- sockets time to deliver it. The event app_mention has the negated seq of its message, and goes to apps whose bot is `named` ("U1 U2 ").
CREATE FUNCTION app_events_add(workspaces text[], channels text[], seqs bigint[], tss bigint[], frames text[], names text[], named text[],
                               url_max bigint, total_max bigint, app_socket_max bigint, app_socket_keep_s bigint, app_socket_wait_ms bigint)
RETURNS TABLE (kept bigint, dropped bigint, app_sockets_dropped bigint) LANGUAGE sql VOLATILE AS $$
    WITH wanted AS (
        SELECT a.id AS app, e.channel, e.seq, e.ts, e.frame, a.events_url IS NULL AS by_socket,
               CASE WHEN a.events_url IS NULL THEN app_socket_max ELSE url_max END AS app_max,
               row_number() OVER (PARTITION BY a.id ORDER BY e.ts, e.seq) AS app_rank, row_number() OVER (ORDER BY e.ts, e.seq) AS rank
        FROM unnest(workspaces, channels, seqs, tss, frames, names, named) AS e (workspace, channel, seq, ts, frame, name, named)
        JOIN apps a ON a.workspace_id = e.workspace AND (e.seq > 0 OR a.bot_user_id = ANY (string_to_array(e.named, ' ')))
            AND (a.events = '' OR e.name = ANY (string_to_array(a.events, ',')))
            AND (a.events_url IS NOT NULL OR (a.linked_since <= e.ts AND a.linked_at > now() - app_socket_keep_s * interval '1 second'))
        JOIN users u ON u.id = a.bot_user_id AND u.active
        JOIN channel_members m ON m.channel_id = e.channel AND m.user_id = a.bot_user_id AND m.active AND m.member_seq <= abs(e.seq)
        WHERE NOT EXISTS (SELECT 1 FROM app_events k WHERE k.app_id = a.id AND k.channel_id = e.channel AND k.seq = e.seq)
    ), waiting AS (
        SELECT w.app, (SELECT count(*) FROM (SELECT 1 FROM app_events e WHERE e.app_id = w.app AND e.frame IS NOT NULL LIMIT w.app_max) l) AS n
        FROM (SELECT DISTINCT app, app_max FROM wanted) w
    ), waiting_in_all AS (
        SELECT count(*) AS n FROM (SELECT 1 FROM app_events e WHERE e.frame IS NOT NULL AND EXISTS (SELECT 1 FROM wanted) LIMIT total_max) l
    ), sorted AS (
        SELECT w.*, w.app_rank + waiting.n <= w.app_max AND w.rank + a.n <= total_max AS has_room
        FROM wanted w JOIN waiting ON waiting.app = w.app CROSS JOIN waiting_in_all a
    ), added AS (
        INSERT INTO app_events (app_id, channel_id, seq, happened, frame, due_at)
        SELECT s.app, s.channel, s.seq, s.ts, s.frame,
               clock_timestamp() + CASE WHEN s.by_socket THEN app_socket_wait_ms ELSE 0 END * interval '1 millisecond'
        FROM sorted s WHERE s.has_room
        ORDER BY s.app, s.channel, s.seq -- as acks lock them
        ON CONFLICT DO NOTHING -- acked meanwhile
        RETURNING app_id
    )
    SELECT (SELECT count(*) FROM added), count(*) FILTER (WHERE NOT s.has_room AND NOT s.by_socket),
           count(*) FILTER (WHERE NOT s.has_room AND s.by_socket)
    FROM sorted s
$$;

-- Leases at most `most` due events to the caller for `lease_ms`. Each app gets at most `app_parallel`, minus what the caller has in flight
-- for it (`busy`: the app of each). Also leases as many challenges (seq = 0, no frame) for URLs that are not verified. Apps take turns, so
-- that one whose URL hangs leaves room for the others, however many events it has waiting.
CREATE FUNCTION app_events_take(busy text[], app_parallel bigint, most bigint, lease_ms bigint)
RETURNS TABLE (app text, workspace text, bot text, url text, secret text, channel text, seq bigint, happened bigint, frame text,
               tries bigint, reason text) LANGUAGE sql VOLATILE AS $$
    WITH turns AS MATERIALIZED (
        SELECT a.id, d.channel_id, d.seq
        FROM apps a JOIN users u ON u.id = a.bot_user_id AND u.active
        LEFT JOIN (SELECT b.app, count(*) AS n FROM unnest(busy) AS b (app) GROUP BY b.app) b ON b.app = a.id
        CROSS JOIN LATERAL (
            SELECT e.channel_id, e.seq, row_number() OVER (ORDER BY e.due_at) AS n FROM app_events e
            WHERE e.app_id = a.id AND e.frame IS NOT NULL AND e.due_at <= clock_timestamp()
            ORDER BY e.due_at LIMIT greatest(app_parallel - coalesce(b.n, 0), 0)) d
        WHERE a.events_url IS NOT NULL AND a.url_verified
        ORDER BY coalesce(b.n, 0) + d.n, random()
        LIMIT most
    ), due AS (
        SELECT e.app_id, e.channel_id, e.seq FROM turns t
        JOIN app_events e ON e.app_id = t.id AND e.channel_id = t.channel_id AND e.seq = t.seq
        WHERE e.frame IS NOT NULL AND e.due_at <= clock_timestamp()
        FOR UPDATE OF e SKIP LOCKED
    ), taken AS (
        UPDATE app_events e SET tries = least(e.tries, 1000) + 1, due_at = clock_timestamp() + lease_ms * interval '1 millisecond'
        FROM due d WHERE e.app_id = d.app_id AND e.channel_id = d.channel_id AND e.seq = d.seq
        RETURNING e.*
    ), challenged AS (
        UPDATE apps a SET verify_tries = least(a.verify_tries, 1000) + 1, verify_at = clock_timestamp() + lease_ms * interval '1 millisecond'
        FROM (SELECT u.id FROM apps u WHERE u.events_url IS NOT NULL AND NOT u.url_verified AND u.verify_at <= clock_timestamp()
              ORDER BY u.verify_at LIMIT most FOR UPDATE SKIP LOCKED) u
        WHERE u.id = a.id
        RETURNING a.*
    )
    SELECT a.id, a.workspace_id, a.bot_user_id, a.events_url, a.signing_secret, t.channel_id, t.seq, t.happened, t.frame, t.tries,
           coalesce(t.reason, 'unknown_error')
    FROM taken t JOIN apps a ON a.id = t.app_id
    UNION ALL
    SELECT c.id, c.workspace_id, c.bot_user_id, c.events_url, c.signing_secret, '', 0, 0, NULL, c.verify_tries, '' FROM challenged c
$$;

-- Records the end of attempts. `waits`: milliseconds until the next attempt; -1: there is none. A challenge (seq = 0) without a next
-- attempt verifies its URL; otherwise the next one follows after 1, 2, 4 … 60 seconds.
CREATE FUNCTION app_events_settle(the_apps text[], channels text[], seqs bigint[], the_tries bigint[], waits bigint[], reasons text[])
RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT FROM unnest(the_apps, channels, seqs) AS s (app, channel, seq)
    JOIN app_events e ON e.app_id = s.app AND e.channel_id = s.channel AND e.seq = s.seq
    ORDER BY e.app_id, e.channel_id, e.seq FOR UPDATE OF e;

    UPDATE app_events e
    SET frame = CASE WHEN s.wait >= 0 THEN e.frame END, reason = s.reason,
        due_at = clock_timestamp() + greatest(s.wait, 0) * interval '1 millisecond'
    FROM unnest(the_apps, channels, seqs, the_tries, waits, reasons) AS s (app, channel, seq, tries, wait, reason)
    WHERE e.app_id = s.app AND e.channel_id = s.channel AND e.seq = s.seq AND (s.wait < 0 OR e.tries = s.tries);

    UPDATE apps a SET url_verified = s.wait < 0, verify_at = clock_timestamp() + least(2 ^ least(a.verify_tries - 1, 6), 60) * interval '1 second'
    FROM unnest(the_apps, seqs, waits) AS s (app, seq, wait) WHERE a.id = s.app AND s.seq = 0 AND NOT a.url_verified
$$;

-- The workspaces with an app for which events are stored, or may be at any moment: an app with a URL, or one that was created or had a socket
-- within a day.
CREATE FUNCTION app_workspaces() RETURNS TABLE (workspace text) LANGUAGE sql STABLE AS $$
    SELECT DISTINCT a.workspace_id FROM apps a
    WHERE a.events_url IS NOT NULL OR a.linked_at > now() - interval '1 day'
       OR a.created > extract(epoch FROM now()) - 86400 ORDER BY 1
$$;

-- Deletes at most `most` rows: those that have waited longer than `keep_s` (`app_socket_keep_s` for app sockets), and those that were
-- completed 10 minutes ago. Returns how many were waiting, and whether there may be more.
CREATE FUNCTION app_events_clean(keep_s bigint, app_socket_keep_s bigint, most bigint)
RETURNS TABLE (dropped bigint, app_sockets_dropped bigint, has_more boolean) LANGUAGE sql VOLATILE AS $$
    WITH expired AS MATERIALIZED (
        SELECT e.ctid AS place FROM app_events e JOIN apps a ON a.id = e.app_id
        WHERE e.queued_at < now() - least(keep_s, app_socket_keep_s, 600) * interval '1 second' AND (SELECT clock_hold_us()) = 0
          AND CASE WHEN e.frame IS NULL THEN e.due_at < now() - interval '10 minutes'
              ELSE e.queued_at < now() - CASE WHEN a.events_url IS NULL THEN app_socket_keep_s ELSE keep_s END * interval '1 second' END
        LIMIT most FOR UPDATE OF e SKIP LOCKED
    ), gone AS (
        DELETE FROM app_events e USING apps a
        WHERE e.ctid = ANY (ARRAY(SELECT x.place FROM expired x)) AND a.id = e.app_id
        RETURNING e.frame IS NOT NULL AS waited, a.events_url IS NULL AS by_socket
    )
    SELECT count(*) FILTER (WHERE waited AND NOT by_socket), count(*) FILTER (WHERE waited AND by_socket), count(*) = most FROM gone
$$;

-- Notes that an app is about to open a socket. Events are stored for it from now on, or without interruption if it had one within
-- `keep_s`. `by_socket`: whether the app uses sockets rather than a URL.
CREATE FUNCTION app_linked(app text, keep_s bigint) RETURNS TABLE (by_socket boolean) LANGUAGE sql VOLATILE AS $$
    UPDATE apps a SET linked_at = now(),
        linked_since = CASE WHEN a.linked_at > now() - keep_s * interval '1 second' THEN a.linked_since ELSE clock_us() END
    WHERE a.id = app RETURNING a.events_url IS NULL
$$;

-- Same as id_write() in src/gateway/socket_mode/envelope.c.
CREATE FUNCTION envelope_id(app text, channel text, seq bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT concat_ws('-', substr(h, 1, 8), substr(h, 9, 4), '5' || substr(h, 13, 3), '8' || substr(h, 16, 3), substr(h, 19, 12))
    FROM encode(sha256(convert_to(app || '.' || channel || '.' || seq, 'UTF8')), 'hex') AS h
$$;

-- Completes events that the app acked, whether stored or not. Without a channel only the envelope's id is known; such an event is completed
-- if it is stored.
CREATE FUNCTION link_events_ack(the_apps text[], channels text[], seqs bigint[], ids text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
    WITH present AS MATERIALIZED ( -- locked before their events, as apps_delete() does
        SELECT a.id FROM apps a WHERE a.id = ANY (the_apps) ORDER BY a.id FOR KEY SHARE
    ), acked AS (
        SELECT k.app, k.channel, k.seq, k.id FROM unnest(the_apps, channels, seqs, ids) AS k (app, channel, seq, id)
        WHERE k.app IN (SELECT a.id FROM present a)
    ), kept AS MATERIALIZED ( -- computes each id once, not once per ack
        SELECT e.app_id, e.channel_id, e.seq, envelope_id(e.app_id, e.channel_id, e.seq) AS id FROM app_events e
        WHERE e.app_id IN (SELECT k.app FROM acked k WHERE k.channel = '') AND e.frame IS NOT NULL
    )
    INSERT INTO app_events (app_id, channel_id, seq, happened)
    SELECT k.app, k.channel, k.seq, 0 FROM acked k WHERE k.channel <> ''
    UNION
    SELECT e.app_id, e.channel_id, e.seq, 0 FROM acked k JOIN kept e ON e.app_id = k.app AND e.id = k.id WHERE k.channel = ''
    ORDER BY 1, 2, 3
    ON CONFLICT (app_id, channel_id, seq) DO UPDATE SET frame = NULL, due_at = clock_timestamp()
$$;

-- Makes events due whose attempt was not acked in time or lost its link, and stores those that are not stored yet. Events for which another
-- gateway has begun a later attempt are left alone.
CREATE FUNCTION link_events_return(the_apps text[], channels text[], seqs bigint[], times bigint[], frames text[], the_tries bigint[])
RETURNS void LANGUAGE sql VOLATILE AS $$
    WITH present AS MATERIALIZED (
        SELECT a.id FROM apps a WHERE a.id = ANY (the_apps) ORDER BY a.id FOR KEY SHARE
    )
    INSERT INTO app_events AS e (app_id, channel_id, seq, happened, frame, tries)
    SELECT k.app, k.channel, k.seq, k.happened, k.frame, k.tries
    FROM unnest(the_apps, channels, seqs, times, frames, the_tries) AS k (app, channel, seq, happened, frame, tries)
    JOIN present a ON a.id = k.app
    ORDER BY k.app, k.channel, k.seq
    ON CONFLICT (app_id, channel_id, seq) DO UPDATE SET due_at = clock_timestamp()
        WHERE e.frame IS NOT NULL AND e.tries = excluded.tries
$$;

-- Leases due events, for each app at most its `room`, oldest first. The lease lasts as long as an ack may take: `window_ms`, doubled with
-- each attempt. Events that have had all their attempts are completed, and returned without a frame.
CREATE FUNCTION link_events_take(the_apps text[], rooms bigint[], window_ms bigint, attempts bigint)
RETURNS TABLE (app text, channel text, seq bigint, happened bigint, frame text, tries bigint) LANGUAGE sql VOLATILE AS $$
    WITH due AS (
        SELECT d.app_id, d.channel_id, d.seq
        FROM unnest(the_apps, rooms) AS w (app, room)
        CROSS JOIN LATERAL (
            SELECT e.app_id, e.channel_id, e.seq FROM app_events e
            WHERE e.app_id = w.app AND e.frame IS NOT NULL AND e.due_at <= clock_timestamp()
            ORDER BY e.due_at, e.happened LIMIT w.room FOR UPDATE SKIP LOCKED) d
    ), taken AS (
        UPDATE app_events e SET tries = least(e.tries, 1000) + 1, frame = CASE WHEN least(e.tries, 1000) + 1 < attempts THEN e.frame END,
            due_at = clock_timestamp() + (window_ms << (least(greatest(e.tries, 0), 20) + 1)::integer) * interval '1 millisecond'
        FROM due d WHERE e.app_id = d.app_id AND e.channel_id = d.channel_id AND e.seq = d.seq
        RETURNING e.*
    )
    SELECT t.app_id, t.channel_id, t.seq, t.happened, t.frame, t.tries FROM taken t ORDER BY t.happened, t.channel_id, t.seq
$$;
