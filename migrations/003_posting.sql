-- SPDX-License-Identifier: Apache-2.0
-- Posts, in group commits; edits and deletes.

-- Commits one batch of posts and answers one row an item. Channels are locked in the order of their ids, so that two
-- writers never deadlock; everything after the lock sees what was committed before it. An item that may not be posted
-- gets an `error` and leaves no trace; 'retry' says: the same key is earlier in this very batch, ask again after it.
-- Items with a `key` are safe to repeat: the first message of that key is answered.
-- Only nested loops over indexes are ever right here, also while the tables are too young to have statistics.
CREATE FUNCTION post_batch(batch_id text, items bigint[], workspaces text[], channel_ids text[], authors text[], bodies text[],
                           extras text[], threads_ts bigint[], broadcasts boolean[], keys text[], digests text[],
                           client_msg_ids text[], has_replies boolean)
RETURNS TABLE (item bigint, error text, ts bigint, seq bigint, ord bigint, posts bigint, is_private boolean,
               parent_user text, is_duplicate boolean)
LANGUAGE plpgsql VOLATILE SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
    now_us bigint;
BEGIN
    PERFORM 1 FROM channels c WHERE c.id = ANY (channel_ids) ORDER BY c.id FOR NO KEY UPDATE;
    now_us := clock_us();
    RETURN QUERY
    WITH checked AS MATERIALIZED (
        SELECT a.*, c.seq AS head_seq, c.ord AS head_ord, c.last_ts, c.is_private, p.posts, r.user_id AS parent_user, k.ts AS key_ts,
               a.thread IS NULL OR a.broadcast AS counted,
               CASE WHEN c.id IS NULL OR c.workspace_id <> a.workspace OR (c.is_private AND m.active IS NOT TRUE)
                        THEN 'channel_not_found'
                    WHEN k.ts IS NOT NULL AND (k.channel_id <> a.channel OR k.digest <> a.digest) THEN 'idempotency_key_reused'
                    WHEN k.ts IS NOT NULL THEN 'duplicate'
                    WHEN m.active IS NOT TRUE THEN 'not_in_channel'
                    WHEN c.is_archived THEN 'is_archived'
                    WHEN a.thread IS NOT NULL AND (r.ts IS NULL OR r.deleted OR r.thread_ts IS NOT NULL OR r.subtype LIKE 'channel\_%')
                        THEN 'thread_not_found'
                    WHEN a.key IS NOT NULL AND row_number() OVER (PARTITION BY a.author, a.key ORDER BY a.item) > 1 THEN 'retry'
               END AS error
        FROM unnest(items, workspaces, channel_ids, authors, bodies, extras, array_replace(threads_ts, 0, NULL), broadcasts, keys, digests,
                    client_msg_ids)
            AS a (item, workspace, channel, author, body, extra, thread, broadcast, key, digest, client_msg_id)
        LEFT JOIN channels c ON c.id = a.channel
        LEFT JOIN channel_members m ON m.channel_id = a.channel AND m.user_id = a.author
        LEFT JOIN channel_posters p ON p.channel_id = a.channel AND p.user_id = a.author
        LEFT JOIN message_keys k ON k.user_id = a.author AND k.key = a.key
        LEFT JOIN messages r ON r.channel_id = a.channel AND r.ts = a.thread
    ), numbered AS MATERIALIZED (
        SELECT o.*, greatest(now_us, o.last_ts) + count(*) OVER in_channel AS ts, o.head_seq + count(*) OVER in_channel AS seq,
               o.head_ord + count(*) FILTER (WHERE o.counted) OVER in_channel AS ord,
               coalesce(o.posts, 0) + count(*) FILTER (WHERE o.counted) OVER by_author AS author_posts,
               o.counted AND count(*) FILTER (WHERE o.counted) OVER in_channel = count(*) FILTER (WHERE o.counted) OVER all_channel AS is_last
        FROM checked o WHERE o.error IS NULL
        WINDOW all_channel AS (PARTITION BY o.channel), in_channel AS (PARTITION BY o.channel ORDER BY o.item),
               by_author AS (PARTITION BY o.channel, o.author ORDER BY o.item)
    ), inserted AS (
        INSERT INTO messages (channel_id, ts, seq, ord, user_id, author_posts, counted, broadcast, thread_ts, subtype, body, extra,
                              client_msg_id)
        SELECT n.channel, n.ts, n.seq, n.ord, n.author, n.author_posts, n.counted, n.broadcast AND n.thread IS NOT NULL, n.thread,
               CASE WHEN n.broadcast AND n.thread IS NOT NULL THEN 'thread_broadcast' END, n.body, n.extra, n.client_msg_id
        FROM numbered n
    ), heads AS (
        UPDATE channels c SET seq = h.seq, ord = h.ord, last_ts = h.ts, changed = pg_current_xact_id(),
            updated_ts = coalesce(h.counted_ts, c.updated_ts), latest_ts = coalesce(h.counted_ts, c.latest_ts),
            latest_user = coalesce(h.author, c.latest_user), latest_preview = coalesce(h.preview, c.latest_preview)
        FROM (SELECT n.channel, max(n.seq) AS seq, max(n.ord) AS ord, max(n.ts) AS ts, max(n.ts) FILTER (WHERE n.counted) AS counted_ts,
                     max(n.author) FILTER (WHERE n.is_last) AS author, max(preview(n.body)) FILTER (WHERE n.is_last) AS preview
              FROM numbered n GROUP BY n.channel) h
        WHERE c.id = h.channel
    ), posters AS (
        INSERT INTO channel_posters (channel_id, user_id, posts)
        SELECT n.channel, n.author, max(n.author_posts) FROM numbered n WHERE n.counted GROUP BY n.channel, n.author
        ON CONFLICT (channel_id, user_id) DO UPDATE SET posts = excluded.posts
    ), kept AS (
        INSERT INTO message_keys (user_id, key, channel_id, ts, digest)
        SELECT n.author, n.key, n.channel, n.ts, n.digest FROM numbered n WHERE n.key IS NOT NULL
    ), told AS (
        INSERT INTO outbox (id, items, channels, seqs, tss, kinds, users)
        SELECT batch_id, array_agg(n.item), array_agg(n.channel), array_agg(n.seq), array_agg(n.ts), array_agg('post'::text),
               array_agg(n.author)
        FROM numbered n HAVING count(*) > 0
    )
    SELECT n.item, NULL::text, n.ts, n.seq, n.ord, n.author_posts, n.is_private, n.parent_user, false FROM numbered n
    UNION ALL
    SELECT k.item, NULLIF(k.error, 'duplicate'), k.key_ts, NULL, NULL, NULL, k.is_private, NULL, k.error = 'duplicate'
    FROM checked k WHERE k.error IS NOT NULL;
    IF has_replies THEN
        PERFORM threads_refresh(o.channels, o.tss) FROM outbox o WHERE o.id = batch_id;
    END IF;
END $$;

-- Brings the threads of the given replies up to date.
CREATE FUNCTION threads_refresh(channel_ids text[], tss bigint[]) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO threads (channel_id, ts, user_id, reply_count, latest_reply, reply_users)
    SELECT g.channel_id, g.thread_ts, root.user_id, all_replies.count, all_replies.latest, all_replies.users
    FROM (SELECT DISTINCT m.channel_id, m.thread_ts FROM unnest(channel_ids, tss) AS e (channel, ts)
          JOIN messages m ON m.channel_id = e.channel AND m.ts = e.ts WHERE m.thread_ts IS NOT NULL) g
    JOIN messages root ON root.channel_id = g.channel_id AND root.ts = g.thread_ts
    CROSS JOIN LATERAL (
        SELECT count(*)::integer AS count, coalesce(max(m.ts), 0) AS latest,
               coalesce((array_agg(DISTINCT m.user_id))[1:100], '{}') AS users
        FROM messages m WHERE m.channel_id = g.channel_id AND m.thread_ts = g.thread_ts AND NOT m.deleted) all_replies
    ON CONFLICT (channel_id, ts) DO UPDATE SET reply_count = excluded.reply_count, latest_reply = excluded.latest_reply,
        reply_users = excluded.reply_users
$$;

-- What a batch committed, for a writer that lost the answer: waits until the transaction that held the batch's channels is
-- over, then answers from the batch's outbox row. No rows: it was not committed. Items that are not in it left no trace.
CREATE FUNCTION post_batch_find(batch_id text, channel_ids text[]) RETURNS TABLE (item bigint, ts bigint, seq bigint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM channels c WHERE c.id = ANY (channel_ids) ORDER BY c.id FOR NO KEY UPDATE;
    RETURN QUERY SELECT e.item, e.ts, e.seq FROM outbox o CROSS JOIN LATERAL unnest(o.items, o.tss, o.seqs) AS e (item, ts, seq)
                 WHERE o.id = batch_id;
END $$;

-- What a writer needs to change a message: the channel locked, the message found, or an error.
CREATE FUNCTION message_lock(workspace text, caller text, channel text, message_ts bigint, OUT error text, OUT message messages)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    c channels;
    member boolean;
BEGIN
    SELECT * INTO c FROM channels WHERE id = channel AND workspace_id = workspace FOR NO KEY UPDATE;
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

-- Replaces what is given (NULL keeps). Authors only.
CREATE FUNCTION message_update(outbox_id text, workspace text, caller text, channel text, message_ts bigint, new_body text,
                               new_extra text)
RETURNS TABLE (error text, seq bigint, event_ts bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    told record;
BEGIN
    SELECT * INTO found FROM message_lock(workspace, caller, channel, message_ts);
    IF found.error IS NULL AND ((found.message).user_id <> caller OR (found.message).subtype LIKE 'channel\_%') THEN
        found.error := 'cant_update_message';
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::bigint, NULL::bigint;
        RETURN;
    END IF;
    SELECT * INTO told FROM channel_advance(channel);
    UPDATE messages m SET body = coalesce(new_body, m.body), extra = CASE WHEN new_extra IS NULL THEN m.extra ELSE NULLIF(new_extra, '') END,
        edited_ts = told.ts, edited_by = caller
    WHERE m.channel_id = channel AND m.ts = message_ts;
    UPDATE channels c SET latest_preview = preview(coalesce(new_body, (found.message).body))
    WHERE c.id = channel AND c.latest_ts = message_ts;
    INSERT INTO changes VALUES (channel, told.seq, 'edit', message_ts, caller, told.ts);
    PERFORM outbox_put(outbox_id, channel, told.seq, message_ts, 'edit', caller, (found.message).body);
    RETURN QUERY SELECT NULL::text, told.seq, told.ts;
END $$;

-- Leaves a tombstone without a body. Authors and admins.
CREATE FUNCTION message_delete(outbox_id text, workspace text, caller text, is_admin boolean, channel text, message_ts bigint)
RETURNS TABLE (error text, seq bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    told record;
    latest messages;
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
        SELECT * INTO latest FROM messages m WHERE m.channel_id = channel AND m.counted AND NOT m.deleted ORDER BY m.ts DESC LIMIT 1;
        UPDATE channels c SET deleted_ord = greatest(c.deleted_ord, (found.message).ord), latest_ts = coalesce(latest.ts, 0),
            latest_user = coalesce(latest.user_id, ''), latest_preview = preview(coalesce(latest.body, ''))
        WHERE c.id = channel;
    END IF;
    IF (found.message).thread_ts IS NOT NULL THEN
        PERFORM threads_refresh(ARRAY[channel], ARRAY[message_ts]);
    END IF;
    INSERT INTO changes VALUES (channel, told.seq, 'delete', message_ts, caller, told.ts);
    PERFORM outbox_put(outbox_id, channel, told.seq, message_ts, 'delete', caller, (found.message).body);
    RETURN QUERY SELECT NULL::text, told.seq;
END $$;
