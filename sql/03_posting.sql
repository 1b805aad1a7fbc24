-- SPDX-License-Identifier: Apache-2.0
-- Posts, in group commits; edits and deletes.

-- Commits one batch of posts, all of it or nothing: when any item may not be posted, it raises TD001 and leaves no trace; the
-- writer then asks post_check() which ones, and commits the rest. What can be known without the tables (which posts share a
-- channel or an author, and their order) the writer has worked out:
--   channel_…  one entry a channel, in the order of ids (two writers lock in the same order, so they never deadlock): how many
--              events and counted messages, which of them (from 1; 0: none) is the last counted one, its author and preview
--   author_…   one entry a channel and author, in that order: how many counted posts
--   item_…     one entry a post: the place (from 1) of its channel and author above; its rank (from 0) among its channel's events;
--              how many counted messages, and how many of its author's, there are up to it
--   mention_…  one entry a mention: the place of its post, who is mentioned ('': the whole channel), where (mentions.sources)
-- The channel's row is locked before anything is looked at, so what is checked after it stays so until the commit.
-- Answers, by channel, the ts and seq of its first post, the ord before it, and its traits (type + 4 strategy_in_use + 16
-- generation); and by item, with commas
-- between, the authors of the messages replied to, if there are any.
-- Only nested loops over indexes are ever right here, also while the tables are too young to have statistics: the sessions of
-- writers have no other plans.
CREATE FUNCTION post_batch(batch_id text, channel_ids text[], channel_workspaces text[], channel_events bigint[], channel_counted bigint[],
                           channel_last bigint[], channel_authors text[], channel_previews text[],
                           author_channels text[], author_ids text[], author_posts bigint[],
                           item_channels bigint[], item_ranks bigint[], item_ords bigint[], item_authors bigint[], item_posts bigint[],
                           bodies text[], extras text[], threads_ts bigint[], broadcasts boolean[], keys text[], digests text[],
                           client_msg_ids text[], mention_items bigint[], mention_users text[], mention_sources bigint[],
                           has_keys boolean, has_replies boolean, has_mentions boolean,
                           OUT first_ts bigint[], OUT first_seq bigint[], OUT first_ord bigint[], OUT traits bigint[],
                           OUT parent_users text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    first_posts bigint[]; -- by author
    written bigint;
    now_us bigint := clock_us();
BEGIN
    WITH moved AS (
        UPDATE channels c SET seq = c.seq + h.events, ord = c.ord + h.counted, last_ts = greatest(now_us, c.last_ts) + h.events,
            changed = pg_current_xact_id(),
            updated_ts = CASE WHEN h.last > 0 THEN greatest(now_us, c.last_ts) + h.last ELSE c.updated_ts END,
            latest_ts = CASE WHEN h.last > 0 THEN greatest(now_us, c.last_ts) + h.last ELSE c.latest_ts END,
            latest_user = CASE WHEN h.last > 0 THEN h.author ELSE c.latest_user END,
            latest_preview = CASE WHEN h.last > 0 THEN h.preview ELSE c.latest_preview END
        FROM unnest(channel_ids, channel_workspaces, channel_events, channel_counted, channel_last, channel_authors, channel_previews)
            WITH ORDINALITY AS h (id, workspace, events, counted, last, author, preview, n)
        WHERE c.id = h.id AND c.workspace_id = h.workspace AND NOT c.is_archived
        RETURNING h.n, c.seq - h.events + 1 AS seq, c.ord - h.counted AS ord, c.last_ts - h.events + 1 AS ts,
                  c.type + 4 * c.strategy_in_use + 16 * c.generation AS traits
    )
    SELECT array_agg(m.seq), array_agg(m.ord), array_agg(m.ts), array_agg(m.traits)
    INTO first_seq, first_ord, first_ts, traits FROM (SELECT * FROM moved ORDER BY n) m;
    IF has_mentions THEN
        PERFORM members_lock(author_channels || array_agg(channel_ids[item_channels[i.n]]), author_ids || array_agg(i.named))
        FROM unnest(mention_items, mention_users) AS i (n, named);
    END IF;
    WITH counted AS (
        UPDATE channel_members m SET posts = m.posts + a.posts
        FROM unnest(author_channels, author_ids, author_posts) WITH ORDINALITY AS a (channel, author, posts, n)
        WHERE m.channel_id = a.channel AND m.user_id = a.author AND m.active
        RETURNING a.n, m.posts - a.posts AS posts
    )
    SELECT array_agg(c.posts) INTO first_posts FROM (SELECT * FROM counted ORDER BY n) c;
    IF cardinality(first_seq) IS DISTINCT FROM cardinality(channel_ids)
       OR cardinality(first_posts) IS DISTINCT FROM cardinality(author_ids) THEN
        RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'not every post may be posted';
    END IF;
    INSERT INTO messages (channel_id, ts, seq, ord, user_id, author_posts, counted, broadcast, thread_ts, subtype, body, extra,
                          client_msg_id)
    SELECT channel_ids[item_channels[n]], first_ts[item_channels[n]] + item_ranks[n], first_seq[item_channels[n]] + item_ranks[n],
           first_ord[item_channels[n]] + item_ords[n], author_ids[item_authors[n]], first_posts[item_authors[n]] + item_posts[n],
           threads_ts[n] = 0 OR broadcasts[n], threads_ts[n] <> 0 AND broadcasts[n], NULLIF(threads_ts[n], 0),
           CASE WHEN threads_ts[n] <> 0 AND broadcasts[n] THEN 'thread_broadcast' END, bodies[n], extras[n], client_msg_ids[n]
    FROM generate_series(1, cardinality(bodies)) AS n;
    INSERT INTO outbox (id, channels, seqs, tss, counts, kinds, users)
    VALUES (batch_id, channel_ids, first_seq, first_ts, channel_events, array_fill('post'::text, ARRAY[cardinality(channel_ids)]),
            array_fill(NULL::text, ARRAY[cardinality(channel_ids)]));
    IF has_keys THEN
        INSERT INTO message_keys (user_id, key, channel_id, ts, digest)
        SELECT author_ids[i.author], i.key, channel_ids[i.channel], first_ts[i.channel] + i.rank, i.digest
        FROM unnest(item_channels, item_ranks, item_authors, keys, digests) AS i (channel, rank, author, key, digest)
        WHERE i.key IS NOT NULL ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written <> cardinality(array_remove(keys, NULL)) THEN
            RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'a key is there already';
        END IF;
    END IF;
    IF has_mentions THEN
        PERFORM mentions_add(array_agg(channel_ids[item_channels[i.n]]), array_agg(first_ts[item_channels[i.n]] + item_ranks[i.n]),
                             array_agg(i.named), array_agg(author_ids[item_authors[i.n]]), array_agg(threads_ts[i.n]),
                             array_agg(threads_ts[i.n] = 0 OR broadcasts[i.n]), array_agg(i.source))
        FROM unnest(mention_items, mention_users, mention_sources) AS i (n, named, source);
    END IF;
    IF has_replies THEN
        PERFORM 1 FROM unnest(item_channels, threads_ts) AS i (channel, thread)
        WHERE i.thread <> 0 AND NOT thread_exists(channel_ids[i.channel], i.thread);
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'a thread is not there';
        END IF;
        PERFORM threads_reply(batch_id);
        IF has_mentions THEN
            PERFORM threads_mention(batch_id, mention_users);
        END IF;
        SELECT string_agg(coalesce(r.user_id, ''), ',' ORDER BY i.n) INTO parent_users
        FROM unnest(item_channels, threads_ts) WITH ORDINALITY AS i (channel, thread, n)
        LEFT JOIN messages r ON r.channel_id = channel_ids[i.channel] AND r.ts = i.thread;
    END IF;
END $$;

-- post_batch() for a batch of one message that is no reply and mentions nobody: statements on single rows start several times faster.
CREATE FUNCTION post_one(batch_id text, workspace text, channel text, author text, message_preview text, message_body text,
                         message_extra text, key text, digest text, client_msg_id text,
                         OUT first_ts bigint[], OUT first_seq bigint[], OUT first_ord bigint[], OUT traits bigint[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now_us bigint := clock_us();
    head record;
    own bigint;
BEGIN
    UPDATE channels c SET seq = c.seq + 1, ord = c.ord + 1, last_ts = greatest(now_us, c.last_ts) + 1, changed = pg_current_xact_id(),
        updated_ts = greatest(now_us, c.last_ts) + 1, latest_ts = greatest(now_us, c.last_ts) + 1, latest_user = author,
        latest_preview = message_preview
    WHERE c.id = channel AND (c.workspace_id = workspace) IS TRUE AND NOT c.is_archived
    RETURNING c.seq, c.ord, c.last_ts AS ts, c.type + 4 * c.strategy_in_use + 16 * c.generation AS traits INTO head;
    UPDATE channel_members m SET posts = m.posts + 1 WHERE m.channel_id = channel AND m.user_id = author AND m.active
    RETURNING m.posts INTO own;
    IF head.seq IS NULL OR own IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'may not be posted';
    END IF;
    INSERT INTO messages (channel_id, ts, seq, ord, user_id, author_posts, counted, body, extra, client_msg_id)
    VALUES (channel, head.ts, head.seq, head.ord, author, own, true, message_body, message_extra, client_msg_id);
    first_ts := ARRAY[head.ts];
    first_seq := ARRAY[head.seq];
    first_ord := ARRAY[head.ord - 1];
    traits := ARRAY[head.traits];
    INSERT INTO outbox (id, channels, seqs, tss, counts, kinds, users)
    VALUES (batch_id, ARRAY[channel], first_seq, first_ts, '{1}', '{post}', ARRAY[author]);
    IF key IS NOT NULL THEN
        INSERT INTO message_keys AS k (user_id, key, channel_id, ts, digest) VALUES (author, post_one.key, channel, head.ts, post_one.digest)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'a key is there already';
        END IF;
    END IF;
END $$;

-- The root of the thread that a message stands in; NULL when it stands in none.
CREATE FUNCTION thread_root(channel text, message_ts bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT r.thread_ts FROM messages r WHERE r.channel_id = channel AND r.ts = message_ts AND NOT r.deleted
$$;

-- Whether `thread` is a message that may be replied to.
CREATE FUNCTION thread_exists(channel text, thread bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM messages r WHERE r.channel_id = channel AND r.ts = thread AND NOT r.deleted AND r.thread_ts IS NULL
                                              AND (r.subtype IS NULL OR r.subtype NOT LIKE 'channel\_%'))
$$;

-- Why each of these posts may not be posted; NULL when it may, as far as is known now. Those whose key is there already, with the same
-- content, answer its ts.
CREATE FUNCTION post_check(workspaces text[], channel_ids text[], authors text[], threads_ts bigint[], keys text[], digests text[])
RETURNS TABLE (error text, duplicate_ts bigint) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN c.id IS NULL OR c.workspace_id <> a.workspace OR (c.is_private AND m.active IS NOT TRUE) THEN 'channel_not_found'
                WHEN k.ts IS NOT NULL AND (k.channel_id <> a.channel OR k.digest <> a.digest) THEN 'idempotency_key_reused'
                WHEN k.ts IS NOT NULL THEN NULL
                WHEN m.active IS NOT TRUE THEN 'not_in_channel'
                WHEN c.is_archived THEN 'is_archived'
                WHEN a.thread <> 0 AND NOT thread_exists(a.channel, a.thread) THEN 'thread_not_found' END,
           k.ts
    FROM unnest(workspaces, channel_ids, authors, threads_ts, keys, digests) WITH ORDINALITY
        AS a (workspace, channel, author, thread, key, digest, n)
    LEFT JOIN channels c ON c.id = a.channel
    LEFT JOIN channel_members m ON m.channel_id = a.channel AND m.user_id = a.author
    LEFT JOIN message_keys k ON k.user_id = a.author AND k.key = a.key
    ORDER BY a.n
$$;

-- What a batch committed, by channel as post_batch() answers it, for a writer that lost the answer: its outbox row. No row: it was
-- not committed, and never will be. It may still be on its way (in a proxy, or at a server that stood still), so where its row
-- is not there yet, an empty one takes its place: for a transaction that has written its own and not ended, that waits; one
-- that comes later finds the id taken. (Housekeeping deletes it, with other rows that are done.)
CREATE FUNCTION post_batch_find(batch_id text) RETURNS TABLE (first_ts bigint[], first_seq bigint[]) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO outbox (id, done, channels, seqs, tss, kinds, users) VALUES (batch_id, true, '{}', '{}', '{}', '{}', '{}')
    ON CONFLICT (id) DO NOTHING;
    RETURN QUERY SELECT o.tss[:cardinality(o.counts)], o.seqs[:cardinality(o.counts)] FROM outbox o
                 WHERE o.id = batch_id AND o.counts IS NOT NULL;
END $$;

-- What a writer needs to change a message: the channel locked, the message found, or an error.
CREATE FUNCTION message_lock(workspace text, caller text, channel text, message_ts bigint, OUT error text, OUT message messages)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    c channels;
    member boolean;
BEGIN
    SELECT * INTO c FROM channels WHERE id = channel AND (workspace_id = workspace) IS TRUE FOR NO KEY UPDATE;
    SELECT m.active INTO member FROM channel_members m WHERE m.channel_id = channel AND m.user_id = caller;
    IF c.id IS NULL OR (c.is_private AND member IS NOT TRUE) THEN
        error := 'channel_not_found';
    ELSIF member IS NOT TRUE THEN
        error := 'not_in_channel';
    ELSIF c.is_archived THEN
        error := 'is_archived';
    ELSE
        SELECT * INTO message FROM messages m WHERE m.channel_id = channel AND m.ts = message_ts AND NOT m.deleted;
        IF message.ts IS NULL THEN
            error := 'message_not_found';
        END IF;
    END IF;
END $$;

-- The extra of an edited message: `now` has what it replaces, or takes away by [] or {}. NULL keeps all.
CREATE FUNCTION extra_merge(was text, now text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN now IS NULL THEN was ELSE (
        SELECT '{' || string_agg(to_json(e.key) || ':' || e.value, ',' ORDER BY e.n) || '}'
        FROM (SELECT w.key, w.value::text, w.n FROM json_each(coalesce(was, '{}')::json) WITH ORDINALITY AS w (key, value, n)
              WHERE now::json -> w.key IS NULL
              UNION ALL SELECT a.key, a.value::text, 1000 + a.n FROM json_each(now::json) WITH ORDINALITY AS a (key, value, n)
              WHERE a.value::text NOT IN ('[]', '{}')) e) END
$$;

-- Whether there is anything to see in a message without text.
CREATE FUNCTION extra_shows(extra text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(extra::json -> 'blocks', extra::json -> 'attachments') IS NOT NULL $$;

-- The extra of a reply that its channel shows: that has a subtype of its own.
CREATE FUNCTION extra_shown(extra text, is_shown boolean) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN is_shown THEN extra_merge(extra, '{"subtype":{}}') ELSE extra END $$;

-- Replaces what is given (NULL keeps), with the mentions in it; or shows a reply to the channel, where it does not count. Authors only.
CREATE FUNCTION message_update(outbox_id text, workspace text, caller text, channel text, message_ts bigint, new_body text,
                               new_extra text, mention_users text[], mention_sources bigint[], has_blocks boolean, is_shown boolean)
RETURNS TABLE (error text, seq bigint, event_ts bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    told record;
    is_edit boolean := new_body IS NOT NULL OR new_extra IS NOT NULL;
BEGIN
    SELECT * INTO found FROM message_lock(workspace, caller, channel, message_ts);
    IF found.error IS NULL AND ((found.message).user_id <> caller OR (found.message).subtype LIKE 'channel\_%') THEN
        found.error := 'cant_update_message';
    ELSIF found.error IS NULL AND is_shown AND (found.message).thread_ts IS NULL THEN
        found.error := 'cant_broadcast_message';
    ELSIF found.error IS NULL AND is_shown AND is_edit AND NOT (found.message).broadcast THEN
        found.error := 'no_dual_broadcast_content_update';
    ELSIF found.error IS NULL AND is_edit AND coalesce(new_body, (found.message).body) ~ '^\s*$'
          AND NOT extra_shows(extra_merge((found.message).extra, new_extra)) THEN
        found.error := 'no_text';
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::bigint, NULL::bigint;
        RETURN;
    END IF;
    SELECT * INTO told FROM channel_advance(channel);
    UPDATE messages m SET body = coalesce(new_body, m.body), extra = extra_shown(extra_merge(m.extra, new_extra), is_shown),
        edited_ts = CASE WHEN is_edit THEN told.ts ELSE m.edited_ts END, edited_by = CASE WHEN is_edit THEN caller ELSE m.edited_by END,
        broadcast = m.broadcast OR is_shown, subtype = CASE WHEN is_shown THEN 'thread_broadcast' ELSE m.subtype END
    WHERE m.channel_id = channel AND m.ts = message_ts;
    UPDATE channels c SET latest_preview = preview(coalesce(new_body, (found.message).body))
    WHERE c.id = channel AND c.latest_ts = message_ts;
    INSERT INTO changes (channel_id, seq, kind, message_ts, user_id, event_ts, mentioned)
    VALUES (channel, told.seq, 'edit', message_ts, caller, told.ts,
            mentions_replace(found.message, CASE WHEN new_body IS NULL THEN 0 ELSE 1 END + CASE WHEN has_blocks THEN 2 ELSE 0 END,
                             mention_users, mention_sources));
    PERFORM outbox_put(outbox_id, channel, told.seq, message_ts, 'edit', caller, (found.message).body,
                       extra_shown((found.message).extra, is_shown));
    IF (found.message).thread_ts IS NOT NULL THEN
        PERFORM threads_mention(outbox_id, h.mentioned) FROM changes h WHERE h.channel_id = channel AND h.seq = told.seq;
    END IF;
    RETURN QUERY SELECT NULL::text, told.seq, told.ts;
END $$;

-- Leaves a tombstone without a body. Authors and admins.
CREATE FUNCTION message_delete(outbox_id text, workspace text, caller text, is_admin boolean, channel text, message_ts bigint)
RETURNS TABLE (error text, seq bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    told record;
    latest messages;
    was_latest boolean;
BEGIN
    SELECT * INTO found FROM message_lock(workspace, caller, channel, message_ts);
    IF found.error IS NULL AND (((found.message).user_id <> caller AND NOT is_admin)
                                OR (found.message).subtype LIKE 'channel\_%') THEN
        found.error := 'cant_delete_message';
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::bigint;
        RETURN;
    END IF;
    SELECT * INTO told FROM channel_advance(channel);
    UPDATE messages m SET deleted = true, body = '', extra = NULL WHERE m.channel_id = channel AND m.ts = message_ts;
    IF (found.message).counted THEN
        UPDATE channels c SET deleted_ord = greatest(c.deleted_ord, (found.message).ord) WHERE c.id = channel
        RETURNING c.latest_ts = message_ts INTO was_latest;
    END IF;
    IF was_latest THEN -- all after it are deleted: they may be many
        SELECT * INTO latest FROM messages m WHERE m.channel_id = channel AND m.ts < message_ts AND m.counted AND NOT m.deleted
        ORDER BY m.ts DESC LIMIT 1;
        UPDATE channels c SET latest_ts = coalesce(latest.ts, 0), latest_user = coalesce(latest.user_id, ''),
            latest_preview = preview(coalesce(latest.body, ''))
        WHERE c.id = channel;
    END IF;
    IF (found.message).thread_ts IS NOT NULL THEN
        PERFORM thread_reply_deleted(channel, (found.message).thread_ts, message_ts, (found.message).user_id);
    END IF;
    DELETE FROM mentions n WHERE n.channel_id = channel AND n.ts = message_ts;
    INSERT INTO changes (channel_id, seq, kind, message_ts, user_id, event_ts)
    VALUES (channel, told.seq, 'delete', message_ts, caller, told.ts);
    PERFORM outbox_put(outbox_id, channel, told.seq, message_ts, 'delete', caller, (found.message).body, (found.message).extra);
    RETURN QUERY SELECT NULL::text, told.seq;
END $$;
