-- SPDX-License-Identifier: Apache-2.0
-- Threads: who follows them, read positions, unread counts.
-- Locks are taken in this order: channel, channel_members, thread_members by (channel, thread, user).

-- Counts the replies of a batch, which are in the outbox row `batch_id`. The author of a reply follows the thread from that reply on, the
-- root's author from the first reply on. The caller holds the channels' row locks, so nobody joins or leaves meanwhile.
CREATE FUNCTION threads_reply(batch_id text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r record;       -- arrays, with an entry for each thread and author of replies
    authors record; -- authors of roots who follow from now on
BEGIN
    SELECT array_agg(g.channel_id) AS channels, array_agg(g.thread_ts) AS threads, array_agg(g.user_id) AS users,
           array_agg(g.count) AS counts, array_agg(g.first) AS firsts, array_agg(g.last) AS lasts
    INTO r
    FROM (SELECT m.channel_id, m.thread_ts, m.user_id, count(*)::integer AS count, min(m.ts) AS first, max(m.ts) AS last
          FROM outbox o CROSS JOIN LATERAL outbox_entries(o) AS e
          JOIN messages m ON m.channel_id = e.channel AND m.ts = e.ts
          WHERE o.id = batch_id AND m.thread_ts IS NOT NULL
          GROUP BY m.channel_id, m.thread_ts, m.user_id ORDER BY m.channel_id, m.thread_ts, m.user_id) g;
    WITH begun AS (
        INSERT INTO threads (channel_id, ts, user_id, last_ts)
        SELECT g.channel, g.thread, root.user_id, g.first
        FROM (SELECT a.channel, a.thread, min(a.first) AS first FROM unnest(r.channels, r.threads, r.firsts) AS a (channel, thread, first)
              GROUP BY a.channel, a.thread) g
        JOIN messages root ON root.channel_id = g.channel AND root.ts = g.thread
        ON CONFLICT DO NOTHING RETURNING *
    ), following AS (
        INSERT INTO thread_members (channel_id, thread_ts, user_id, following, since)
        SELECT b.channel_id, b.ts, b.user_id, true, b.last_ts FROM begun b
        JOIN channel_members m ON m.channel_id = b.channel_id AND m.user_id = b.user_id AND m.active
        ORDER BY b.channel_id, b.ts
        ON CONFLICT DO NOTHING RETURNING * -- users who unfollowed it before have a row
    )
    SELECT array_agg(f.channel_id) AS channels, array_agg(f.thread_ts) AS threads, array_agg(f.user_id) AS users
    INTO authors FROM following f;
    INSERT INTO thread_members AS m (channel_id, thread_ts, user_id, following, since, ts, replies)
    SELECT a.channel, a.thread, a.author, true, a.first, a.first, a.count
    FROM unnest(r.channels, r.threads, r.users, r.firsts, r.counts) AS a (channel, thread, author, first, count)
    ON CONFLICT (channel_id, thread_ts, user_id) DO UPDATE SET replies = m.replies + excluded.replies, following = true,
        since = CASE WHEN m.following THEN m.since ELSE excluded.since END,
        ts = CASE WHEN m.following THEN m.ts ELSE greatest(m.ts, excluded.ts) END,
        changed = CASE WHEN m.following THEN m.changed ELSE excluded.changed END;
    UPDATE threads t SET reply_count = t.reply_count + g.count, latest_reply = g.last, last_ts = g.last,
        reply_users_count = t.reply_users_count + cardinality(g.newcomers),
        reply_users = (t.reply_users || g.newcomers)[1:reply_users_max()]
    FROM (SELECT a.channel, a.thread, sum(a.count)::integer AS count, max(a.last) AS last,
                 coalesce(array_agg(a.author ORDER BY a.first) FILTER (WHERE m.replies = a.count), '{}') AS newcomers
          FROM unnest(r.channels, r.threads, r.users, r.firsts, r.lasts, r.counts) AS a (channel, thread, author, first, last, count)
          JOIN thread_members m ON m.channel_id = a.channel AND m.thread_ts = a.thread AND m.user_id = a.author
          GROUP BY a.channel, a.thread) g
    WHERE t.channel_id = g.channel AND t.ts = g.thread;
    PERFORM threads_tell(batch_id, authors.channels, authors.threads, authors.users);
    PERFORM threads_tell(batch_id, array_agg(a.channel), array_agg(a.thread), array_agg(a.author))
    FROM unnest(r.channels, r.threads, r.users, r.firsts) AS a (channel, thread, author, first)
    JOIN thread_members m ON m.channel_id = a.channel AND m.thread_ts = a.thread AND m.user_id = a.author AND m.since = a.first
                             AND m.ts >= a.first;
END $$;

-- Users whom a reply in the outbox row mentions by name follow its thread, with that reply unread: since the ts of a post, which may
-- precede a reply of theirs in the same row; since now for an edit. The caller holds the locks of channels and members.
CREATE FUNCTION threads_mention(outbox_id text, named text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    f record; -- arrays, with an entry for each new follower
BEGIN
    WITH following AS (
        INSERT INTO thread_members AS m (channel_id, thread_ts, user_id, following, since, ts)
        SELECT DISTINCT ON (n.channel_id, n.thread_ts, n.user_id) n.channel_id, n.thread_ts, n.user_id, true,
               CASE e.kind WHEN 'post' THEN n.ts ELSE clock_us() END,
               coalesce((SELECT r.ts FROM messages r WHERE r.channel_id = n.channel_id AND r.thread_ts = n.thread_ts AND r.ts < n.ts
                         ORDER BY r.ts DESC LIMIT 1), 0)
        FROM outbox o CROSS JOIN LATERAL outbox_entries(o) AS e
        JOIN mentions n ON n.channel_id = e.channel AND n.ts = e.ts
        WHERE o.id = outbox_id AND e.kind IN ('post', 'edit') AND n.thread_ts <> 0 AND n.user_id <> '' AND n.user_id = ANY (named)
        ORDER BY n.channel_id, n.thread_ts, n.user_id, n.ts
        ON CONFLICT (channel_id, thread_ts, user_id) DO UPDATE SET following = true, since = excluded.since,
            ts = CASE WHEN m.following THEN least(m.ts, excluded.ts) ELSE greatest(m.ts, excluded.ts) END, changed = excluded.changed
        WHERE NOT m.following OR m.since > excluded.since
        RETURNING m.*
    )
    SELECT array_agg(a.channel_id) AS channels, array_agg(a.thread_ts) AS threads, array_agg(a.user_id) AS users INTO f FROM following a;
    PERFORM threads_tell(outbox_id, f.channels, f.threads, f.users);
END $$;

-- How many authors of replies a root names; Slack's number.
CREATE FUNCTION reply_users_max() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 5 $$;

-- Adds to an outbox row that these users now follow these threads, or no longer do.
CREATE FUNCTION threads_tell(outbox_id text, channel_ids text[], threads bigint[], users text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT outbox_add(outbox_id, channel_ids, array_fill(0::bigint, ARRAY[coalesce(cardinality(users), 0)]), threads, 'thread_follow', users)
$$;

-- Subtracts a deleted reply of `author`. The caller holds the channel's row lock.
CREATE FUNCTION thread_reply_deleted(channel text, thread bigint, reply_ts bigint, author text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone boolean; -- it was the author's last reply
    named text[];
BEGIN
    UPDATE thread_members m SET replies = m.replies - 1
    WHERE m.channel_id = channel AND m.thread_ts = thread AND m.user_id = author RETURNING m.replies = 0 INTO gone;
    UPDATE threads t SET reply_count = t.reply_count - 1, reply_users_count = t.reply_users_count - gone::integer,
        reply_users = CASE WHEN gone THEN array_remove(t.reply_users, author) ELSE t.reply_users END,
        latest_reply = CASE WHEN t.latest_reply > reply_ts THEN t.latest_reply
                            ELSE coalesce((SELECT r.ts FROM messages r WHERE r.channel_id = channel AND r.thread_ts = thread
                                           AND r.ts < reply_ts AND NOT r.deleted ORDER BY r.ts DESC LIMIT 1), 0) END
    WHERE t.channel_id = channel AND t.ts = thread
    RETURNING CASE WHEN cardinality(t.reply_users) < least(t.reply_users_count, reply_users_max()) THEN t.reply_users END INTO named;
    UPDATE threads t SET reply_users = named || (SELECT m.user_id FROM thread_members m WHERE m.channel_id = channel
                                                 AND m.thread_ts = thread AND m.replies > 0 AND m.user_id <> ALL (named) LIMIT 1)
    WHERE named IS NOT NULL AND t.channel_id = channel AND t.ts = thread;
END $$;

-- A member who leaves a channel no longer follows any of its threads. Their replies stay counted.
CREATE FUNCTION threads_leave(channel text, member text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM thread_members m WHERE m.user_id = member AND m.channel_id = channel AND m.following
    ORDER BY m.thread_ts FOR NO KEY UPDATE;
    DELETE FROM thread_members m WHERE m.user_id = member AND m.channel_id = channel AND m.following AND m.replies = 0;
    UPDATE thread_members m SET following = false, changed = pg_current_xact_id()
    WHERE m.user_id = member AND m.channel_id = channel AND m.following;
END $$;

-- A user's state in each of their threads. Unread: other users' replies after the cursor, except deleted ones. Threads that the user does
-- not follow have nothing unread.
CREATE VIEW thread_rows AS
    SELECT m.channel_id, m.thread_ts, m.user_id, m.following, m.since, m.ts, m.changed,
           coalesce(t.latest_reply, 0) AS latest_reply, coalesce(t.last_ts, 0) AS last_ts,
           CASE WHEN m.following AND t.latest_reply > m.ts THEN
               (SELECT count(*) FROM messages r WHERE r.channel_id = m.channel_id AND r.thread_ts = m.thread_ts AND r.ts > m.ts
                                                  AND NOT r.deleted AND r.user_id <> m.user_id) ELSE 0 END AS unread,
           CASE WHEN m.following AND t.latest_reply > m.ts THEN
               (SELECT count(DISTINCT n.ts) FROM mentions n WHERE n.channel_id = m.channel_id AND n.user_id IN ('', m.user_id)
                    AND n.ts > m.ts AND n.thread_ts = m.thread_ts AND n.author <> m.user_id) ELSE 0 END AS mentions
    FROM thread_members m
    LEFT JOIN threads t ON t.channel_id = m.channel_id AND t.ts = m.thread_ts;

-- The state as clients see it, even for users who have no row.
CREATE FUNCTION thread_state(channel text, thread bigint, caller text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '{"channel":"' || channel || '","thread_ts":"' || ts_text(thread) || '","last_read":"' || ts_text(coalesce(r.ts, 0))
        || '","has_unreads":' || (coalesce(r.unread, 0) > 0)::text || ',"unread_count":' || coalesce(r.unread, 0)
        || ',"mention_count":' || coalesce(r.mentions, 0) || ',"subscribed":' || coalesce(r.following, false)::text || '}'
    FROM (SELECT 1) one LEFT JOIN thread_rows r ON r.channel_id = channel AND r.thread_ts = thread AND r.user_id = caller
$$;

-- What a user's devices receive after a change of that state: the members of the frame, without its type.
CREATE FUNCTION thread_event(channel text, thread bigint, caller text)
RETURNS TABLE (workspace_id text, is_private boolean, cursor_ts bigint, is_followed boolean, members text) LANGUAGE sql STABLE AS $$
    SELECT c.workspace_id, c.is_private, coalesce(m.ts, 0), coalesce(m.following, false),
           substr(left(thread_state(channel, thread, caller), -1), 2) || ',"subscription":{"type":"thread","channel":"' || channel
           || '","thread_ts":"' || ts_text(thread) || '","date_create":' || coalesce(m.since, 0) / 1000000
           || ',"active":' || coalesce(m.following, false)::text || ',"last_read":"' || ts_text(coalesce(m.ts, 0))
           || '"},"event_ts":"' || ts_text(clock_us()) || '"'
    FROM channels c LEFT JOIN thread_members m ON m.channel_id = c.id AND m.thread_ts = thread AND m.user_id = caller
    WHERE c.id = channel
$$;

-- Why a user cannot use a thread; NULL: they can. A message without replies is the root of an empty thread.
CREATE FUNCTION thread_refusal(workspace text, caller text, channel text, thread bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(channel_refusal(workspace, caller, channel),
                    CASE WHEN NOT thread_exists(channel, thread) AND NOT EXISTS (
                        SELECT 1 FROM threads t WHERE t.channel_id = channel AND t.ts = thread AND t.reply_count > 0)
                    THEN 'thread_not_found' END)
$$;

-- Moves a cursor forward, to the last reply at or before `target`; never back. Does not make the user a follower.
CREATE FUNCTION threads_mark(outbox_id text, workspace text, caller text, channel text, thread bigint, target bigint)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text := thread_refusal(workspace, caller, channel, thread);
    moved boolean;
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::text, false;
        RETURN;
    END IF;
    INSERT INTO thread_members AS m (channel_id, thread_ts, user_id, ts)
    (SELECT channel, thread, caller, r.ts FROM messages r WHERE r.channel_id = channel AND r.thread_ts = thread AND r.ts <= target
     ORDER BY r.ts DESC LIMIT 1)
    ON CONFLICT (channel_id, thread_ts, user_id) DO UPDATE SET ts = excluded.ts, changed = excluded.changed WHERE m.ts < excluded.ts;
    moved := FOUND;
    IF moved THEN
        PERFORM outbox_put(outbox_id, channel, 0, thread, 'thread_mark', caller);
    END IF;
    RETURN QUERY SELECT NULL::text, thread_state(channel, thread, caller), moved;
END $$;

-- From the newest reply on. Changes nothing for a user who follows already.
CREATE FUNCTION threads_follow(outbox_id text, workspace text, caller text, channel text, thread bigint)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text;
    began boolean;
BEGIN
    PERFORM 1 FROM channel_members m WHERE m.channel_id = channel AND m.user_id = caller FOR SHARE; -- so that the caller cannot leave meanwhile
    refusal := thread_refusal(workspace, caller, channel, thread);
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::text, false;
        RETURN;
    END IF;
    INSERT INTO thread_members AS m (channel_id, thread_ts, user_id, following, since, ts)
    VALUES (channel, thread, caller, true, clock_us(),
            coalesce((SELECT t.last_ts FROM threads t WHERE t.channel_id = channel AND t.ts = thread), 0))
    ON CONFLICT (channel_id, thread_ts, user_id) DO UPDATE SET following = true, since = excluded.since, ts = greatest(m.ts, excluded.ts),
        changed = excluded.changed WHERE NOT m.following;
    began := FOUND;
    IF began THEN
        PERFORM threads_tell(outbox_id, ARRAY[channel], ARRAY[thread], ARRAY[caller]);
    END IF;
    RETURN QUERY SELECT NULL::text, thread_state(channel, thread, caller), began;
END $$;

-- Lasts until the caller replies, is mentioned by name, or follows again. A root's author may unfollow before the first reply.
CREATE FUNCTION threads_unfollow(outbox_id text, workspace text, caller text, channel text, thread bigint)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text := thread_refusal(workspace, caller, channel, thread);
    ended boolean;
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::text, false;
        RETURN;
    END IF;
    INSERT INTO thread_members (channel_id, thread_ts, user_id) VALUES (channel, thread, caller) ON CONFLICT DO NOTHING;
    UPDATE thread_members m SET following = false, changed = pg_current_xact_id()
    WHERE m.channel_id = channel AND m.thread_ts = thread AND m.user_id = caller AND m.following;
    ended := FOUND;
    IF ended THEN
        PERFORM threads_tell(outbox_id, ARRAY[channel], ARRAY[thread], ARRAY[caller]);
    END IF;
    RETURN QUERY SELECT NULL::text, thread_state(channel, thread, caller), ended;
END $$;

-- The number of broadcast replies that mention the caller and are unread both in their thread, after `thread_cursor`, and in their channel,
-- which counts nothing while the caller has closed it.
CREATE FUNCTION mentions_in_both(channel text, thread bigint, caller text, thread_cursor bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(DISTINCT n.ts) FROM mentions n
    JOIN channel_members m ON m.channel_id = channel AND m.user_id = caller
    WHERE n.channel_id = channel AND n.user_id IN ('', caller) AND n.ts > thread_cursor AND n.thread_ts = thread AND n.author <> caller
      AND n.counted AND n.ts > m.ts AND NOT (m.singles > 0 AND is_read_singly(channel, caller, n.ts))
      AND (m.closed_ord IS NULL OR m.closed_ord < (SELECT h.ord FROM channel_heads h WHERE h.id = channel))
$$;

-- Unread totals of all threads that a user follows, except those in archived channels. `shared_mentions`: mentions that are also counted in
-- their channel.
CREATE FUNCTION thread_totals(workspace text, caller text, OUT unread_count bigint, OUT mention_count bigint, OUT shared_mentions bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM thread_members m WHERE m.user_id = caller AND m.following) THEN
        unread_count := 0; -- to start the plan below takes five times as long as to see that
        mention_count := 0;
        shared_mentions := 0;
        RETURN;
    END IF;
    SELECT coalesce(sum(r.unread), 0)::bigint, coalesce(sum(r.mentions), 0)::bigint,
           coalesce(sum(CASE WHEN r.mentions > 0 THEN mentions_in_both(r.channel_id, r.thread_ts, caller, r.ts) END), 0)::bigint
    INTO unread_count, mention_count, shared_mentions
    FROM (SELECT t.channel_id, t.thread_ts, t.ts, t.unread, t.mentions
          FROM thread_rows t
          JOIN channels c ON c.id = t.channel_id AND (c.workspace_id = workspace) IS TRUE AND NOT c.is_archived
          WHERE t.user_id = caller AND t.following AND t.latest_reply > t.ts OFFSET 0) r;
END $$;

-- Locks the cursors of the threads that a user follows and that have newer replies, in order.
CREATE FUNCTION threads_lock(caller text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM thread_members m JOIN threads t ON t.channel_id = m.channel_id AND t.ts = m.thread_ts AND t.last_ts > m.ts
    WHERE m.user_id = caller AND m.following ORDER BY m.channel_id, m.thread_ts FOR NO KEY UPDATE OF m;
END $$;

-- Adds to an outbox row that a user's cursors in these threads moved. Returns how many.
CREATE FUNCTION thread_marks_tell(outbox_id text, caller text, channel_ids text[], threads bigint[]) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    count integer := coalesce(cardinality(threads), 0);
BEGIN
    PERFORM outbox_add(outbox_id, channel_ids, array_fill(0::bigint, ARRAY[count]), threads, 'thread_mark', array_fill(caller, ARRAY[count]));
    RETURN count;
END $$;

-- Marks all threads that a user follows up to their newest replies, in the outbox row `outbox_id`. Returns how many changed.
CREATE FUNCTION threads_mark_all(outbox_id text, workspace text, caller text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moved record; -- arrays, with an entry for each cursor that moved
BEGIN
    PERFORM threads_lock(caller);
    WITH marked AS (
        UPDATE thread_members m SET ts = t.last_ts, changed = pg_current_xact_id()
        FROM threads t, channels c
        WHERE m.user_id = caller AND m.following AND t.channel_id = m.channel_id AND t.ts = m.thread_ts AND t.last_ts > m.ts
          AND c.id = m.channel_id AND (c.workspace_id = workspace) IS TRUE AND NOT c.is_archived
        RETURNING m.channel_id, m.thread_ts
    )
    SELECT array_agg(k.channel_id) AS channels, array_agg(k.thread_ts) AS threads INTO moved FROM marked k;
    RETURN thread_marks_tell(outbox_id, caller, moved.channels, moved.threads);
END $$;

-- The first `count` threads that a user follows after the given place, except those in archived channels. Unread threads come first, then
-- those with the newest activity. Place and unread are as of `until` (0: now, or the last reply if that
-- is ahead of the clock), so that posts between two pages move nothing; the state is current.
CREATE FUNCTION threads_list(workspace text, caller text, unread_only boolean, until bigint, after_unread boolean, after_activity bigint,
                             after_channel text, after_thread bigint, count integer)
RETURNS TABLE (as_of bigint, channel_id text, thread_ts bigint, unread boolean, activity bigint, latest_reply bigint, state text)
LANGUAGE sql STABLE AS $$
    WITH asked AS MATERIALIZED (
        SELECT CASE WHEN until > 0 THEN until
                    ELSE greatest(clock_us(), (SELECT max(greatest(r.last_ts, r.thread_ts)) FROM thread_rows r
                                               WHERE r.user_id = caller AND r.following)) END AS until
    ), followed AS (
        SELECT r.channel_id, r.thread_ts, r.latest_reply,
               r.latest_reply > r.ts AND EXISTS (
                   SELECT 1 FROM messages x WHERE x.channel_id = r.channel_id AND x.thread_ts = r.thread_ts AND x.ts > r.ts
                                              AND x.ts <= a.until AND NOT x.deleted AND x.user_id <> caller) AS unread,
               CASE WHEN r.last_ts <= a.until THEN greatest(r.last_ts, r.thread_ts)
                    ELSE coalesce((SELECT x.ts FROM messages x WHERE x.channel_id = r.channel_id AND x.thread_ts = r.thread_ts
                                   AND x.ts <= a.until ORDER BY x.ts DESC LIMIT 1), r.thread_ts) END AS activity
        FROM asked a, thread_rows r JOIN channels c ON c.id = r.channel_id AND (c.workspace_id = workspace) IS TRUE AND NOT c.is_archived
        WHERE r.user_id = caller AND r.following AND r.thread_ts <= a.until
          AND (r.latest_reply > 0 OR thread_exists(r.channel_id, r.thread_ts)) -- otherwise root and replies are deleted
    ), page AS (
        SELECT f.* FROM followed f
        WHERE (f.unread OR NOT unread_only)
          AND (after_channel = '' OR (NOT f.unread, - f.activity, f.channel_id, f.thread_ts)
                                     > (NOT after_unread, - after_activity, after_channel COLLATE "C", after_thread))
        ORDER BY f.unread DESC, f.activity DESC, f.channel_id, f.thread_ts LIMIT count
    )
    SELECT a.until, p.channel_id, p.thread_ts, p.unread, p.activity, p.latest_reply, thread_state(p.channel_id, p.thread_ts, caller)
    FROM asked a, page p
$$;
