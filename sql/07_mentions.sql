-- SPDX-License-Identifier: Apache-2.0
-- Mentions, and members' notification settings for a channel.

-- Locks the rows of members, in the order in which marks lock them, so that no deadlock can form. Users who are not members are skipped.
CREATE FUNCTION members_lock(channel_ids text[], user_ids text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM (SELECT DISTINCT u.channel COLLATE "C" AS channel, u.named COLLATE "C" AS named
                    FROM unnest(channel_ids, user_ids) AS u (channel, named) ORDER BY 1, 2) a
    CROSS JOIN LATERAL ( -- one lookup for each: a join may read all members of a channel
        SELECT FROM channel_members m WHERE m.channel_id = a.channel AND m.user_id = a.named FOR NO KEY UPDATE) m;
END $$;

-- Notes that a counted message mentions the whole channel. The caller holds the lock of the channel, or of its hot head.
CREATE FUNCTION channel_mention(channel text, at bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last bigint := hot_lock(channel, true);
BEGIN
    IF last IS NULL THEN
        UPDATE channels c SET mention_ts = greatest(c.mention_ts, at) WHERE c.id = channel;
    ELSE
        UPDATE hot_heads h SET mention_ts = greatest(h.mention_ts, at) WHERE h.channel_id = channel AND h.turn = last;
    END IF;
END $$;

-- Adds mentions, one per entry and each once. The caller holds the locks of channels and members, so memberships last until the commit.
CREATE FUNCTION mentions_add(channel_ids text[], tss bigint[], users text[], authors text[], threads_ts bigint[], counts boolean[],
                             where_found bigint[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO mentions (channel_id, ts, user_id, author, thread_ts, counted, sources)
    SELECT a.channel, a.ts, a.named, a.author, a.thread, a.counted, a.source
    FROM unnest(channel_ids, tss, users, authors, threads_ts, counts, where_found)
        AS a (channel, ts, named, author, thread, counted, source)
    LEFT JOIN channel_members m ON m.channel_id = a.channel AND m.user_id = a.named
    WHERE a.named = '' OR (m.active AND a.named <> a.author);
    UPDATE channel_members m SET mention_ts = greatest(m.mention_ts, a.ts)
    FROM (SELECT n.channel, n.named, max(n.ts) AS ts FROM unnest(channel_ids, tss, users, counts) AS n (channel, ts, named, counted)
          WHERE n.counted AND n.named <> '' GROUP BY n.channel, n.named) a
    WHERE m.channel_id = a.channel AND m.user_id = a.named AND m.active;
    IF '' = ANY (users) THEN
        PERFORM channel_mention(a.channel, a.ts)
        FROM (SELECT n.channel, max(n.ts) AS ts FROM unnest(channel_ids, tss, users, counts) AS n (channel, ts, named, counted)
              WHERE n.counted AND n.named = '' GROUP BY n.channel) a;
    END IF;
END $$;

-- Updates a message's mentions after an edit: in its `replaced` parts (bits as in mentions.sources) there are now the given ones. The
-- caller holds the channel's lock. Returns the users whose mention was added or removed; NULL: none.
CREATE FUNCTION mentions_replace(message messages, replaced bigint, users text[], where_found bigint[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text[] := ARRAY(SELECT n.user_id FROM mentions n WHERE n.channel_id = message.channel_id AND n.ts = message.ts);
    gone text[];
    came text[];
BEGIN
    IF cardinality(was) = 0 AND cardinality(users) = 0 THEN
        RETURN NULL;
    END IF;
    PERFORM members_lock(array_fill(message.channel_id, ARRAY[cardinality(users)]), users);
    UPDATE mentions n SET sources = (n.sources & ~replaced) | coalesce(a.source, 0)
    FROM unnest(was) AS w (named) LEFT JOIN unnest(users, where_found) AS a (named, source) ON a.named = w.named
    WHERE n.channel_id = message.channel_id AND n.ts = message.ts AND n.user_id = w.named;
    WITH deleted AS (
        DELETE FROM mentions n WHERE n.channel_id = message.channel_id AND n.ts = message.ts AND n.sources = 0 RETURNING n.user_id
    ) SELECT array_agg(d.user_id) INTO gone FROM deleted d;
    PERFORM mentions_add(array_agg(message.channel_id), array_agg(message.ts), array_agg(a.named), array_agg(message.user_id),
                         array_agg(coalesce(message.thread_ts, 0)), array_agg(message.counted), array_agg(a.source))
    FROM unnest(users, where_found) AS a (named, source) WHERE a.named <> ALL (was);
    SELECT array_agg(n.user_id) INTO came FROM mentions n
    WHERE n.channel_id = message.channel_id AND n.ts = message.ts AND n.user_id <> ALL (was);
    RETURN gone || came;
END $$;

-- A member's notification settings for a channel; NULL: unchanged. `now_notify` as stored: see notify_level().
CREATE FUNCTION channels_set_notifications(outbox_id text, workspace text, caller text, channel text, now_muted boolean, now_notify text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text;
    altered boolean;
BEGIN
    PERFORM members_lock(ARRAY[channel], ARRAY[caller]);
    refusal := channel_refusal(workspace, caller, channel);
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::text, false;
        RETURN;
    END IF;
    UPDATE channel_members m SET muted = coalesce(now_muted, m.muted), notify = coalesce(now_notify, m.notify),
        changed = pg_current_xact_id()
    WHERE m.channel_id = channel AND m.user_id = caller AND (m.muted <> now_muted OR m.notify <> now_notify);
    altered := FOUND;
    IF altered THEN
        PERFORM push_recheck(caller, channel);
        PERFORM outbox_put(outbox_id, channel, 0, 0, 'preference', caller);
    END IF;
    RETURN QUERY SELECT NULL::text, '{"muted":' || m.muted::text || ',"notify":"'
                                     || (ARRAY['default', 'all', 'mentions', 'none'])[notify_level(m.notify) + 1] || '"}', altered
    FROM channel_members m WHERE m.channel_id = channel AND m.user_id = caller;
END $$;
