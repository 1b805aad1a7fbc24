-- SPDX-License-Identifier: Apache-2.0
-- Read positions, unread counts, and the objects of channels.

-- Why a user may not read a channel; NULL: they may. A channel that they may not see looks like one that does not exist.
CREATE FUNCTION channel_refusal(workspace text, caller text, channel text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN c.id IS NULL OR (c.is_private AND m.active IS NOT TRUE) THEN 'channel_not_found'
                WHEN m.active IS NOT TRUE THEN 'not_in_channel' END
    FROM (SELECT 1) one
    LEFT JOIN channels c ON c.id = channel AND (c.workspace_id = workspace) IS TRUE
    LEFT JOIN channel_members m ON m.channel_id = channel AND m.user_id = caller
$$;

-- The same for reading the history: by a *user's* token, a public channel can be read without being a member, as with Slack.
CREATE FUNCTION history_refusal(workspace text, caller text, channel text, by_user boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT NULLIF(channel_refusal(workspace, caller, channel), CASE WHEN by_user THEN 'not_in_channel' END)
$$;

-- The number of other users' counted messages after `cursor_ord` that have been deleted.
CREATE FUNCTION deleted_after(channel text, caller text, cursor_ord bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM messages d
    WHERE d.channel_id = channel AND d.deleted AND d.counted AND d.ord > cursor_ord AND d.user_id <> caller
$$;

-- The caller's singles after the cursor. Deleted messages are left out, since they are subtracted as such.
CREATE FUNCTION singles_standing(channel text, caller text, cursor_ts bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM read_messages s JOIN messages r ON r.channel_id = channel AND r.ts = s.ts AND NOT r.deleted
    WHERE s.channel_id = channel AND s.user_id = caller AND s.ts > cursor_ts
$$;

-- Whether this message is one of the caller's singles.
CREATE FUNCTION is_read_singly(channel text, caller text, at bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM read_messages s WHERE s.channel_id = channel AND s.user_id = caller AND s.ts = at);
END $$;

-- The number of messages after `cursor_ts` that mention the caller or the whole channel; neither deleted ones nor singles.
CREATE FUNCTION mentions_after(channel text, caller text, cursor_ts bigint, has_singles boolean) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(DISTINCT n.ts) FROM mentions n
            WHERE n.channel_id = channel AND n.user_id IN ('', caller) AND n.ts > cursor_ts AND n.counted AND n.author <> caller
              AND NOT (has_singles AND is_read_singly(channel, caller, n.ts)));
END $$;

-- A member's notification level for a channel, as a number: default, all, mentions, none. Releases before 0.3.0 stored 'all' for members
-- who had not chosen a level; now a member who chooses all has 'every'.
CREATE FUNCTION notify_level(notify text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE notify WHEN 'all' THEN 0 WHEN 'every' THEN 1 WHEN 'mentions' THEN 2 WHEN 'none' THEN 3 ELSE 0 END
$$;

-- unread = head.ord - cursor.ord - own posts after the cursor - others' deleted messages after the cursor - singles
CREATE FUNCTION unread_after(channel text, caller text, head_ord bigint, posts bigint, deleted_ord bigint, cursor_ts bigint, cursor_ord bigint, own bigint,
                             singles integer) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest(0, head_ord - cursor_ord - (posts - own)
                       - CASE WHEN deleted_ord > cursor_ord THEN deleted_after(channel, caller, cursor_ord) ELSE 0 END
                       - CASE WHEN singles > 0 THEN singles_standing(channel, caller, cursor_ts) ELSE 0 END)
$$;

-- The number of mentions after the cursor. The table is read only if the upper bounds `named_ts` and `all_ts` allow for any.
CREATE FUNCTION mentions_unread(channel text, caller text, named_ts bigint, all_ts bigint, cursor_ts bigint, singles integer) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN named_ts > cursor_ts OR all_ts > cursor_ts THEN mentions_after(channel, caller, cursor_ts, singles > 0) ELSE 0 END
$$;

-- The unread state of every member in every channel: the truth, of which Redis keeps a copy.
CREATE VIEW unread_rows AS
    SELECT m.channel_id, m.user_id, c.workspace_id, m.epoch, m.ts, m.seq, m.ord, m.own, coalesce(h.posts, m.posts) AS posts, m.member_seq,
           m.muted, coalesce(h.seq, c.seq) AS head_seq, coalesce(h.ord, c.ord) AS head_ord, coalesce(h.updated_ts, c.updated_ts) AS updated_ts,
           coalesce(h.latest_ts, c.latest_ts) AS latest_ts, coalesce(h.latest_user, c.latest_user) AS latest_user,
           coalesce(h.latest_preview, c.latest_preview) AS latest_preview,
           unread_after(c.id, m.user_id, coalesce(h.ord, c.ord), coalesce(h.posts, m.posts), c.deleted_ord, m.ts, m.ord, m.own, m.singles) AS unread,
           m.active, m.changed AS member_changed, coalesce(h.changed, c.changed) AS channel_changed, c.name, c.type, c.is_archived, c.id AS head_id,
           m.closed_ord IS NULL OR coalesce(h.ord, c.ord) > m.closed_ord AS is_open,
           CASE WHEN coalesce(h.ord, c.ord) - m.ord > coalesce(h.posts, m.posts) - m.own THEN (SELECT o.ts FROM messages o WHERE o.channel_id = c.id AND o.ts > m.ts AND o.counted
                                         AND NOT o.deleted AND o.user_id <> m.user_id
                                         AND (m.singles = 0 OR NOT is_read_singly(c.id, m.user_id, o.ts))
                                         ORDER BY o.ts LIMIT 1) END AS oldest,
           mentions_unread(c.id, m.user_id, m.mention_ts, coalesce(h.mention_ts, c.mention_ts), m.ts, m.singles) AS mentions,
           c.strategy_in_use, c.generation, m.number, m.single_version, notify_level(m.notify) AS notify
    FROM channel_members m
    JOIN channels c ON c.id = m.channel_id
    LEFT JOIN LATERAL hot_state(c.id, c.is_hot, m.user_id) h ON true;

-- The heads of hot channels, with the number of posts that each member has ever made there.
CREATE VIEW hot_rows AS
    SELECT m.channel_id, m.user_id, h.seq, h.ord, h.updated_ts, h.latest_ts, h.latest_user, h.latest_preview, h.mention_ts, h.changed,
           coalesce(h.posts, m.posts) AS posts
    FROM channel_members m CROSS JOIN LATERAL hot_state(m.channel_id, true, m.user_id) h;

CREATE FUNCTION hot_row(channel text, caller text) RETURNS hot_rows LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT r FROM hot_rows r WHERE r.channel_id = channel AND r.user_id = caller);
END $$;

-- The columns of unread_rows that a sidebar needs, for reading 100,000 rows. Hot heads are looked up by functions, because a join would
-- cost an eighth more for each row without one. `is_usual`: everything that is rarely set is not set, and latest_ts is updated_ts.
CREATE VIEW sidebar_rows AS
    SELECT m.channel_id, m.user_id, c.id AS head_id, c.name, c.type, c.is_archived, c.strategy_in_use, m.active, m.epoch, m.ts, m.muted,
           CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).seq ELSE c.seq END AS head_seq,
           CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).updated_ts ELSE c.updated_ts END AS updated_ts,
           CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).latest_ts ELSE c.latest_ts END AS latest_ts,
           CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).latest_user ELSE c.latest_user END AS latest_user,
           CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).latest_preview ELSE c.latest_preview END AS latest_preview,
           unread_after(c.id, m.user_id, CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).ord ELSE c.ord END,
                        CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).posts ELSE m.posts END, c.deleted_ord, m.ts, m.ord, m.own, m.singles) AS unread,
           m.changed AS member_changed, CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).changed ELSE c.changed END AS channel_changed,
           m.closed_ord IS NULL OR CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).ord ELSE c.ord END > m.closed_ord AS is_open,
           mentions_unread(c.id, m.user_id, m.mention_ts, CASE WHEN c.is_hot THEN (hot_row(c.id, m.user_id)).mention_ts ELSE c.mention_ts END, m.ts,
                           m.singles) AS mentions,
           notify_level(m.notify) AS notify,
           NOT c.is_hot AND c.type = 0 AND c.strategy_in_use = 0 AND m.epoch = 0 AND c.latest_ts = c.updated_ts AND NOT m.muted AND m.active
           AND NOT c.is_archived AND m.closed_ord IS NULL AND m.mention_ts <= m.ts AND c.mention_ts <= m.ts AND m.notify = 'all' AS is_usual
    FROM channel_members m JOIN channels c ON c.id = m.channel_id;

-- The same for users in few channels. Each channel is looked up by its id: a join may be planned as a scan of all channels for each row.
CREATE VIEW sidebar_few_rows AS
    SELECT m.channel_id, m.user_id, c.name, c.type, c.is_archived, c.strategy_in_use, m.active, m.epoch, m.ts, m.muted,
           coalesce((c.hot).seq, c.seq) AS head_seq, coalesce((c.hot).updated_ts, c.updated_ts) AS updated_ts,
           coalesce((c.hot).latest_ts, c.latest_ts) AS latest_ts, coalesce((c.hot).latest_user, c.latest_user) AS latest_user,
           coalesce((c.hot).latest_preview, c.latest_preview) AS latest_preview,
           unread_after(c.id, m.user_id, coalesce((c.hot).ord, c.ord), coalesce((c.hot).posts, m.posts), c.deleted_ord, m.ts, m.ord, m.own,
                        m.singles) AS unread,
           m.changed AS member_changed, coalesce((c.hot).changed, c.changed) AS channel_changed,
           m.closed_ord IS NULL OR coalesce((c.hot).ord, c.ord) > m.closed_ord AS is_open,
           mentions_unread(c.id, m.user_id, m.mention_ts, coalesce((c.hot).mention_ts, c.mention_ts), m.ts, m.singles) AS mentions,
           notify_level(m.notify) AS notify,
           c.is_usual AND m.epoch = 0 AND NOT m.muted AND m.active AND m.closed_ord IS NULL AND m.mention_ts <= m.ts AND c.mention_ts <= m.ts
           AND m.notify = 'all' AS is_usual
    FROM channel_members m CROSS JOIN LATERAL (
        SELECT l.id, l.name, l.type, l.is_archived, l.strategy_in_use, l.seq, l.ord, l.updated_ts, l.latest_ts, l.latest_user,
               l.latest_preview, l.deleted_ord, l.changed, l.mention_ts, CASE WHEN l.is_hot THEN hot_row(l.id, m.user_id) END AS hot,
               NOT l.is_hot AND l.type = 0 AND l.strategy_in_use = 0 AND l.latest_ts = l.updated_ts AND NOT l.is_archived AS is_usual
        FROM channels l WHERE l.id = m.channel_id OFFSET 0) c;

-- Deletes singles that the cursor has passed. The caller holds the members' locks.
CREATE FUNCTION singles_pass(channel_ids text[], callers text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
    WITH passed AS (
        DELETE FROM read_messages s USING channel_members m
        WHERE m.channel_id = ANY (channel_ids) AND m.user_id = ANY (callers) AND m.singles > 0
          AND s.channel_id = m.channel_id AND s.user_id = m.user_id AND s.ts <= m.ts
        RETURNING s.channel_id, s.user_id
    )
    UPDATE channel_members m SET singles = m.singles - p.count
    FROM (SELECT channel_id, user_id, count(*) FROM passed GROUP BY 1, 2) p
    WHERE m.channel_id = p.channel_id AND m.user_id = p.user_id
$$;

-- The result of mark_batch(). Flat, because taking a composite column apart costs more than reading the row.
CREATE VIEW mark_answers AS SELECT 0::bigint AS item, ''::text AS error, false AS changed, r.* FROM unread_rows r;

-- Commits a batch of marks, and returns the state afterwards. A cursor only moves forward within its epoch. A `ts` between messages means
-- the last message before it; a `ts` past the head means the head. A mark with an epoch other than the current one changes nothing (-1:
-- without one).
CREATE FUNCTION mark_batch(outbox_id text, items bigint[], workspaces text[], callers text[], channel_ids text[], tss bigint[],
                           epochs bigint[])
RETURNS SETOF mark_answers LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    errors text[];
    changes boolean[];
    passes_singles boolean;
BEGIN
    PERFORM 1 FROM (SELECT DISTINCT * FROM unnest(channel_ids, callers)) AS a (channel, caller)
    JOIN channel_members m ON m.channel_id = a.channel AND m.user_id = a.caller
    ORDER BY m.channel_id, m.user_id FOR NO KEY UPDATE OF m;
    WITH asked AS MATERIALIZED (
        SELECT a.item, a.caller, a.channel, m.ts AS from_ts, m.own, coalesce(h.ord, c.ord) AS head_ord,
               coalesce(h.posts, m.posts) AS posts, m.singles, t.ts, t.seq, t.ord, m.ctid AS place,
               CASE WHEN c.id IS NULL OR c.workspace_id <> a.workspace OR (c.is_private AND m.active IS NOT TRUE)
                        THEN 'channel_not_found'
                    WHEN m.active IS NOT TRUE THEN 'not_in_channel' END AS error,
               m.active AND c.workspace_id = a.workspace AND t.ts > m.ts AND (a.epoch = -1 OR a.epoch = m.epoch) AS moves
        FROM unnest(items, workspaces, callers, channel_ids, tss, epochs) AS a (item, workspace, caller, channel, ts, epoch)
        LEFT JOIN channels c ON c.id = a.channel
        LEFT JOIN channel_members m ON m.channel_id = a.channel AND m.user_id = a.caller
        LEFT JOIN LATERAL hot_state(c.id, c.is_hot, m.user_id) h ON true
        LEFT JOIN LATERAL (SELECT r.ts, r.seq, r.ord FROM messages r WHERE r.channel_id = a.channel AND r.ts <= a.ts
                           ORDER BY r.ts DESC LIMIT 1) t ON true
    ), furthest AS MATERIALIZED (
        SELECT DISTINCT ON (a.channel, a.caller) a.* FROM asked a WHERE a.moves ORDER BY a.channel, a.caller, a.ts DESC
    ), moved AS (
        UPDATE channel_members m SET ts = f.ts, seq = f.seq, ord = f.ord, changed = pg_current_xact_id(),
            own = CASE WHEN f.ord = f.head_ord THEN f.posts WHEN f.posts = f.own THEN f.own
                       -- the member's last post in between has its number
                       ELSE coalesce((SELECT r.author_posts FROM messages r
                                      WHERE r.channel_id = f.channel AND r.ts > f.from_ts AND r.ts <= f.ts AND r.user_id = f.caller
                                        AND r.counted ORDER BY r.ts DESC LIMIT 1), f.own) END
        FROM furthest f WHERE m.ctid = f.place -- locked above, so it stays there
    ), told AS (
        INSERT INTO outbox (id, channels, seqs, tss, kinds, users)
        SELECT mark_batch.outbox_id, array_agg(f.channel), array_agg(f.seq), array_agg(f.ts), array_agg('mark'::text), array_agg(f.caller)
        FROM furthest f HAVING count(*) > 0
    )
    SELECT array_agg(a.error ORDER BY a.item), array_agg(a.moves IS TRUE ORDER BY a.item), bool_or(a.moves AND a.singles > 0)
    INTO errors, changes, passes_singles FROM asked a;
    IF passes_singles THEN
        PERFORM singles_pass(channel_ids, callers);
    END IF;
    IF true = ANY (changes) THEN
        PERFORM push_marked(callers, channel_ids);
    END IF;
    RETURN QUERY SELECT e.item, e.error, e.changed, r.*
    FROM unnest(items, callers, channel_ids, errors, changes) AS e (item, caller, channel, error, changed)
    LEFT JOIN unread_rows r ON r.channel_id = e.channel AND r.user_id = e.caller;
END $$;

-- The position of a cursor just before `message_ts`: the ts of the previous message (0: none is left), the ts of the first message that is
-- left, and the number of the caller's counted posts up to the cursor. Counting these may take long.
CREATE FUNCTION cursor_before(channel text, caller text, message_ts bigint, OUT ts bigint, OUT first_ts bigint, OUT own bigint)
LANGUAGE sql STABLE AS $$
    SELECT b.ts, b.first_ts,
           coalesce(h.posts, m.posts) - (SELECT count(*) FROM messages o WHERE o.channel_id = channel AND o.ts > b.ts AND o.user_id = caller
                                                                        AND o.counted)
    FROM (SELECT coalesce((SELECT r.ts FROM messages r WHERE r.channel_id = channel AND r.ts < message_ts ORDER BY r.ts DESC LIMIT 1), 0) AS ts,
                 (SELECT r.ts FROM messages r WHERE r.channel_id = channel ORDER BY r.ts LIMIT 1) AS first_ts) b
    JOIN channel_members m ON m.channel_id = channel AND m.user_id = caller
    JOIN channels c ON c.id = channel
    LEFT JOIN LATERAL hot_state(channel, c.is_hot, caller) h ON true
$$;

-- Makes `message_ts` and everything after it unread: a new epoch, with the cursor at the message before it.
CREATE FUNCTION mark_unread(outbox_id text, workspace text, caller text, channel text, message_ts bigint)
RETURNS TABLE (error text, state unread_rows) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text := channel_refusal(workspace, caller, channel);
    place record;
    before record;
    first record;
    cursor_ts bigint;
    floor_ord bigint;
BEGIN
    IF refusal IS NULL THEN
        -- Count before locking, since posts wait for the locks. The subtransaction is rolled back to release its lock on messages: release
        -- 0.2.0 requests that table while it holds channels, to drop a month.
        BEGIN
            SELECT * INTO place FROM cursor_before(channel, caller, unread_from(message_ts));
            RAISE EXCEPTION USING ERRCODE = 'TD002';
        EXCEPTION WHEN SQLSTATE 'TD002' THEN
            NULL; -- only the locks had to go
        END;
        PERFORM channels_hold(ARRAY[channel]);
        IF EXISTS (SELECT 1 FROM channels c WHERE c.id = channel AND c.is_hot AND c.strategy_in_use = 3) THEN
            PERFORM channel_cool(channel, ARRAY[caller]); -- so that its generation can change
        END IF;
        PERFORM members_lock(ARRAY[channel], ARRAY[caller]);
        refusal := channel_refusal(workspace, caller, channel); -- the caller may have been removed meanwhile
    END IF;
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::unread_rows;
        RETURN;
    END IF;
    -- Read again under the lock: once month_move() has passed this member, the cursor must not go back into the month.
    message_ts := unread_from(message_ts);
    SELECT r.ts, r.seq, r.ord INTO before FROM messages r
    WHERE r.channel_id = channel AND r.ts < message_ts ORDER BY r.ts DESC LIMIT 1;
    SELECT r.ts, r.ord - r.counted::integer AS ord INTO first FROM messages r WHERE r.channel_id = channel ORDER BY r.ts LIMIT 1;
    IF before.ts IS NULL THEN -- older messages have been dropped and count as read
        floor_ord := coalesce(first.ord, (SELECT c.ord FROM channel_heads c WHERE c.id = channel));
    END IF;
    cursor_ts := coalesce(before.ts, 0);
    IF (place.ts, place.first_ts) IS DISTINCT FROM (cursor_ts, first.ts) THEN
        SELECT * INTO place FROM cursor_before(channel, caller, message_ts);
    END IF;
    DELETE FROM read_messages s WHERE s.channel_id = channel AND s.user_id = caller;
    UPDATE channel_members m SET epoch = m.epoch + 1, ts = cursor_ts, seq = coalesce(before.seq, 0), ord = coalesce(before.ord, floor_ord),
        singles = 0, single_version = m.single_version + 1, own = place.own,
        changed = pg_current_xact_id()
    WHERE m.channel_id = channel AND m.user_id = caller;
    -- A bit does not record its epoch, so all of them become void.
    UPDATE channels c SET generation = c.generation + 1 WHERE c.id = channel AND c.strategy_in_use = 3;
    PERFORM push_marked(ARRAY[caller], ARRAY[channel]);
    PERFORM outbox_put(outbox_id, channel, coalesce(before.seq, 0), cursor_ts, 'mark', caller);
    RETURN QUERY SELECT NULL::text, r FROM unread_rows r WHERE r.channel_id = channel AND r.user_id = caller;
END $$;

CREATE FUNCTION strategy_name(code smallint) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT (ARRAY['sequence', 'zset', 'counter', 'bitmap'])[code + 1] $$;

-- A topic or purpose, with who set it and when, if anyone did. STABLE, like to_json(): as IMMUTABLE it would not be inlined, but parsed and
-- planned at each call.
CREATE FUNCTION setting_object(value text, creator text, last_set bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '{"value":' || to_json(value) || ',"creator":"' || coalesce(creator, '') || '","last_set":' || coalesce(last_set, 0) || '}'
$$;

-- The channel object of Slack's API as JSON text, without what depends on the read state. `is_member` NULL: left out. Built as text,
-- because json_build_object looks up the type of every argument in the catalog, which takes four times as long as the rest of
-- channels.info.
CREATE FUNCTION channel_object(c channels, is_member boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '{"id":"' || c.id || '","name":' || to_json(c.name) || ',"name_normalized":' || to_json(c.name)
        || ',"is_channel":' || (c.type = 0)::text || ',"is_group":' || (c.type <> 0)::text
        || ',"is_im":false,"is_mpim":' || (c.type = 2)::text || ',"is_private":' || c.is_private::text
        || ',"is_archived":' || c.is_archived::text || ',"is_general":' || (c.name = 'general')::text
        || coalesce(',"is_member":' || is_member::text, '')
        || ',"is_shared":false,"is_org_shared":false,"is_ext_shared":false,"is_pending_ext_shared":false,"pending_shared":[]'
        || ',"created":' || c.created
        || ',"updated":' || greatest(c.created * 1000, CASE WHEN c.is_hot THEN hot_last_ts(c.id) ELSE c.last_ts END / 1000)
        || ',"creator":"' || c.creator || '","context_team_id":"' || c.workspace_id
        || '","unlinked":0,"shared_team_ids":[],"previous_names":' || coalesce(array_to_json(c.previous_names)::text, '[]')
        || ',"priority":0,"topic":' || setting_object(c.topic, c.topic_by, c.topic_at)
        || ',"purpose":' || setting_object(c.purpose, c.purpose_by, c.purpose_at)
        || ',"num_members":' || c.member_count || ',"strategy":"' || c.strategy || '","strategy_in_use":"'
        || strategy_name(c.strategy_in_use) || '"}'
$$;

-- The other user in a direct conversation, or the viewer if there is no other.
CREATE FUNCTION direct_peer(people text, viewer text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN strpos(people, ',') = 0 OR split_part(people, ',', 1) <> viewer THEN split_part(people, ',', 1)
                ELSE split_part(people, ',', 2) END
$$;

-- The object of a direct conversation, for one of its members.
CREATE FUNCTION direct_object(c channels, viewer text, closed_ord bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    c := channel_now(c);
    RETURN CASE WHEN c.type = 2 THEN left(channel_object(c, true), -1) || ',"members":["' || replace(c.people, ',', '","') || '"]'
        ELSE '{"id":"' || c.id || '","is_channel":false,"is_group":false,"is_im":true,"is_mpim":false,"is_private":true'
            || ',"is_archived":false,"is_general":false,"is_member":true,"is_shared":false,"is_org_shared":false,"is_ext_shared":false'
            || ',"created":' || c.created || ',"updated":' || greatest(c.created * 1000, c.last_ts / 1000)
            || ',"context_team_id":"' || c.workspace_id || '","user":"' || direct_peer(c.people, viewer) || '","is_user_deleted":'
            || (SELECT NOT u.active FROM users u WHERE u.id = direct_peer(c.people, viewer))::text
            || ',"priority":0,"num_members":' || c.member_count || ',"strategy":"' || c.strategy || '","strategy_in_use":"'
            || strategy_name(c.strategy_in_use) || '"' END
        || ',"is_open":' || (closed_ord IS NULL OR c.ord > closed_ord)::text || '}';
END $$;

-- The object of any conversation, as `viewer` sees it.
CREATE FUNCTION conversation_object(c channels, viewer text, is_member boolean, closed_ord bigint) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN c.people IS NULL THEN channel_object(c, is_member) ELSE direct_object(c, viewer, closed_ord) END
$$;
