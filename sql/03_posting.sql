-- SPDX-License-Identifier: Apache-2.0
-- Posts, by group commit; edits and deletes. Hot channels: 00_hot_channels.sql.

-- How a batch of posts moves the heads of its channels. By channel: ts and seq of its first post, the ord before it, its traits
-- (channel_traits()), and since when it has been hot (NULL: it is not, or has just become so). `n`: the positions of the channels in the
-- batch (from 1), rising.
CREATE TYPE head_moves AS (n bigint[], ts bigint[], seq bigint[], ord bigint[], traits bigint[], since bigint[]);

-- Moves the heads of a batch's hot channels; arguments as in post_batch(). Rows are looked up by ranges of the whole key: with a part of
-- it, a planner that believes the table to be small would read all of it for each row.
CREATE FUNCTION hot_heads_move(channel_ids text[], channel_workspaces text[], channel_events bigint[], channel_counted bigint[],
                               channel_last bigint[], channel_authors text[], channel_previews text[], now_us bigint) RETURNS head_moves
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    m head_moves;
BEGIN
    WITH moved AS (
        UPDATE hot_heads c SET turn = greatest(c.turn, hot_turn(now_us)), seq = c.seq + h.events, ord = c.ord + h.counted,
            last_ts = greatest(now_us, c.last_ts) + h.events, changed = pg_current_xact_id(),
            updated_ts = CASE WHEN h.last > 0 THEN greatest(now_us, c.last_ts) + h.last ELSE c.updated_ts END,
            latest_ts = CASE WHEN h.last > 0 THEN greatest(now_us, c.last_ts) + h.last ELSE c.latest_ts END,
            latest_user = CASE WHEN h.last > 0 THEN h.author ELSE c.latest_user END,
            latest_preview = CASE WHEN h.last > 0 THEN h.preview ELSE c.latest_preview END
        FROM (SELECT a.*, (SELECT x.turn FROM hot_heads x WHERE x.channel_id = a.id ORDER BY x.turn DESC LIMIT 1) AS newest
              FROM unnest(channel_ids, channel_workspaces, channel_events, channel_counted, channel_last, channel_authors, channel_previews)
                  WITH ORDINALITY AS a (id, workspace, events, counted, last, author, preview, n) OFFSET 0) h
        WHERE (c.channel_id, c.turn) >= (h.id, h.newest) AND (c.channel_id, c.turn) <= (h.id, 9223372036854775807)
          AND c.workspace_id = h.workspace
        RETURNING h.n, c.last_ts - h.events + 1 AS ts, c.seq - h.events + 1 AS seq, c.ord - h.counted AS ord, c.traits, c.since
    )
    SELECT array_agg(v.n), array_agg(v.ts), array_agg(v.seq), array_agg(v.ord), array_agg(v.traits), array_agg(v.since)
    INTO m FROM (SELECT * FROM moved ORDER BY n) v;
    RETURN m;
END $$;

-- Joins the moves of a batch's hot channels and of its other channels.
CREATE FUNCTION head_moves_join(a head_moves, b head_moves) RETURNS head_moves LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    SELECT array_agg(v.n), array_agg(v.ts), array_agg(v.seq), array_agg(v.ord), array_agg(v.traits), array_agg(v.since) INTO a
    FROM (SELECT * FROM unnest(a.n, a.ts, a.seq, a.ord, a.traits, a.since) AS x (n, ts, seq, ord, traits, since)
          UNION ALL SELECT y.*, NULL FROM unnest(b.n, b.ts, b.seq, b.ord, b.traits) AS y ORDER BY 1) v;
    RETURN a;
END $$;

-- Counts a batch's posts by author, where some of the channels are hot. Returns the number of counted posts that each author had made in
-- the channel before. `sinces`: by channel, as in head_moves. The caller has moved the channels' heads, so nobody else counts there. If an
-- author is not a member, the result is too short.
CREATE FUNCTION authors_count(channel_ids text[], sinces bigint[], author_places bigint[], author_ids text[], author_posts bigint[],
                              now_us bigint) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    places bigint[];
    before bigint[];
    cold_places bigint[];
    cold_before bigint[];
BEGIN
    WITH counted AS (
        UPDATE hot_authors m SET posts = m.posts + h.posts, turn = greatest(m.turn, hot_author_turn(now_us))
        FROM (SELECT a.posts, a.n, (SELECT x.ctid FROM hot_authors x WHERE x.channel_id = channel_ids[a.place]
                                    AND x.since = sinces[a.place] AND x.user_id = a.author ORDER BY x.turn DESC LIMIT 1) AS place
              FROM unnest(author_places, author_ids, author_posts) WITH ORDINALITY AS a (place, author, posts, n) OFFSET 0) h
        WHERE m.ctid = h.place
        RETURNING h.n, m.posts - h.posts AS posts
    )
    SELECT array_agg(v.n), array_agg(v.posts) INTO places, before FROM (SELECT * FROM counted ORDER BY n) v;
    IF cardinality(places) = cardinality(author_ids) THEN
        RETURN before;
    END IF;
    WITH begun AS (
        INSERT INTO hot_authors AS m (channel_id, since, user_id, turn, posts)
        SELECT channel_ids[a.place], sinces[a.place], a.author, hot_author_turn(now_us), m.posts + a.posts
        FROM unnest(author_places, author_ids, author_posts) WITH ORDINALITY AS a (place, author, posts, n)
        JOIN channel_members m ON m.channel_id = channel_ids[a.place] AND m.user_id = a.author AND m.active
        WHERE sinces[a.place] IS NOT NULL AND a.n <> ALL (coalesce(places, '{}'))
        RETURNING m.channel_id, m.user_id, m.posts
    )
    SELECT places || array_agg(a.n), before || array_agg(b.posts - a.posts) INTO places, before
    FROM unnest(author_places, author_ids, author_posts) WITH ORDINALITY AS a (place, author, posts, n)
    JOIN begun b ON b.channel_id = channel_ids[a.place] AND b.user_id = a.author;
    WITH counted AS (
        UPDATE channel_members m SET posts = m.posts + a.posts
        FROM unnest(author_places, author_ids, author_posts) WITH ORDINALITY AS a (place, author, posts, n)
        WHERE m.channel_id = channel_ids[a.place] AND m.user_id = a.author AND m.active AND sinces[a.place] IS NULL
        RETURNING a.n, m.posts - a.posts AS posts
    )
    SELECT array_agg(v.n), array_agg(v.posts) INTO cold_places, cold_before FROM (SELECT * FROM counted ORDER BY n) v;
    RETURN (SELECT array_agg(v.posts ORDER BY v.n) FROM unnest(places || cold_places, before || cold_before) AS v (n, posts));
END $$;

-- The same for one post in a hot channel, but returns the count including that post; NULL: the author is not a member.
CREATE FUNCTION hot_author_count(channel text, hot_since bigint, author text, now_us bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    own bigint;
BEGIN
    UPDATE hot_authors m SET posts = m.posts + 1, turn = greatest(m.turn, hot_author_turn(now_us))
    WHERE m.channel_id = channel AND m.since = hot_since AND m.user_id = author
      AND m.turn = (SELECT x.turn FROM hot_authors x WHERE x.channel_id = channel AND x.since = hot_since AND x.user_id = author
                    ORDER BY x.turn DESC LIMIT 1)
    RETURNING m.posts INTO own;
    IF NOT FOUND THEN
        INSERT INTO hot_authors AS a (channel_id, since, user_id, turn, posts)
        SELECT channel, hot_since, author, hot_author_turn(now_us), m.posts + 1 FROM channel_members m
        WHERE m.channel_id = channel AND m.user_id = author AND m.active RETURNING a.posts INTO own;
    END IF;
    RETURN own;
END $$;

-- Commits a batch of posts, or nothing. If any of them must be refused, it raises TD001 without leaving a trace; the writer then asks
-- post_check() which ones, and sends the others again. The writer prepares what can be known without the tables, such as which posts share
-- a channel or an author:
--   channel_…  one entry per channel, in the order of ids, so that all writers lock in the same order: the number of events and of
--              counted messages; which event (from 1; 0: none) is the last counted one, its author and preview ('': it has no text)
--   author_…   one entry per channel and author, in that order: the position (from 1) of the channel above, the number of counted posts
--   item_…     one entry per post: the positions of its channel and author above; its rank (from 0) among its channel's events;
--              the number of counted messages, and of its author's counted messages, up to and including it
--   files      one entry per post: the files that it shares, separated by commas
--   heat       0: no channel is hot; 1: some may be; 2: and busy channels become hot
--   mention_…  one entry per mention: the position of its post, the user mentioned ('': the whole channel), where (mentions.sources)
-- The channel's row, or its hot head, is locked before anything is checked, so that the checks still hold at the commit.
-- Returns, by channel, the ts and seq of its first post, the ord before it, and its traits. If there are replies,
-- also returns, by item and separated by commas, the authors of the messages that are replied to.
-- Only nested loops over indexes perform well here, even while new tables have no statistics, so writers' sessions disable all other plans.
CREATE FUNCTION post_batch(batch_id text, channel_ids text[], channel_workspaces text[], channel_events bigint[], channel_counted bigint[],
                           channel_last bigint[], channel_authors text[], channel_previews text[],
                           author_places bigint[], author_ids text[], author_posts bigint[],
                           item_channels bigint[], item_ranks bigint[], item_ords bigint[], item_authors bigint[], item_posts bigint[],
                           bodies text[], extras text[], threads_ts bigint[], broadcasts boolean[], keys text[], digests text[],
                           client_msg_ids text[], mention_items bigint[], mention_users text[], mention_sources bigint[],
                           has_keys boolean, has_replies boolean, has_mentions boolean, heat bigint,
                           has_files boolean DEFAULT false, files text[] DEFAULT NULL,
                           OUT first_ts bigint[], OUT first_seq bigint[], OUT first_ord bigint[], OUT traits bigint[],
                           OUT parent_users text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    hot head_moves;
    moves head_moves;     -- first of the other channels, then of all
    heated text[];        -- channels that become hot
    first_posts bigint[]; -- by author: posts made before
    written bigint;
    now_us bigint := clock_us();
BEGIN
    IF '' = ANY (channel_previews) THEN
        FOR i IN 1 .. cardinality(bodies) LOOP
            IF item_ranks[i] + 1 = channel_last[item_channels[i]] AND extras[i] IS NOT NULL AND channel_previews[item_channels[i]] = '' THEN
                channel_previews[item_channels[i]] := preview(bodies[i], extras[i]);
            END IF;
        END LOOP;
    END IF;
    IF heat > 0 THEN
        hot := hot_heads_move(channel_ids, channel_workspaces, channel_events, channel_counted, channel_last, channel_authors, channel_previews,
                              now_us);
    END IF;
    IF cardinality(hot.n) IS DISTINCT FROM cardinality(channel_ids) THEN
        WITH moved AS (
            UPDATE channels c SET seq = c.seq + h.events, ord = c.ord + h.counted, last_ts = greatest(now_us, c.last_ts) + h.events,
                changed = pg_current_xact_id(),
                updated_ts = CASE WHEN h.last > 0 THEN greatest(now_us, c.last_ts) + h.last ELSE c.updated_ts END,
                latest_ts = CASE WHEN h.last > 0 THEN greatest(now_us, c.last_ts) + h.last ELSE c.latest_ts END,
                latest_user = CASE WHEN h.last > 0 THEN h.author ELSE c.latest_user END,
                latest_preview = CASE WHEN h.last > 0 THEN h.preview ELSE c.latest_preview END,
                is_hot = CASE WHEN heat = 2 AND abs(c.last_ts - now_us) < hot_gap_us() THEN hot_allowed() ELSE false END
            FROM unnest(channel_ids, channel_workspaces, channel_events, channel_counted, channel_last, channel_authors, channel_previews)
                WITH ORDINALITY AS h (id, workspace, events, counted, last, author, preview, n)
            WHERE c.id = h.id AND c.workspace_id = h.workspace AND NOT c.is_archived AND NOT c.is_hot
            RETURNING h.n, c.seq - h.events + 1 AS seq, c.ord - h.counted AS ord, c.last_ts - h.events + 1 AS ts,
                      channel_traits(c.type, c.strategy_in_use, c.generation) AS traits, CASE WHEN c.is_hot THEN c.id END AS heated
        )
        SELECT array_agg(m.n), array_agg(m.ts), array_agg(m.seq), array_agg(m.ord), array_agg(m.traits), array_agg(m.heated)
        INTO moves.n, moves.ts, moves.seq, moves.ord, moves.traits, heated FROM (SELECT * FROM moved ORDER BY n) m;
        heated := array_remove(heated, NULL);
        IF cardinality(heated) > 0 THEN
            PERFORM hot_channels_begin(heated, now_us);
        END IF;
    END IF;
    IF moves.n IS NULL THEN
        moves := hot;
    ELSIF hot.n IS NOT NULL THEN
        moves := head_moves_join(hot, moves);
    END IF;
    first_ts := moves.ts;
    first_seq := moves.seq;
    first_ord := moves.ord;
    traits := moves.traits;
    IF now_us + clock_ahead_us() < ANY (first_ts) THEN
        PERFORM clock_passed(f.ts) FROM unnest(first_ts) AS f (ts) WHERE f.ts > now_us + clock_ahead_us();
    END IF;
    IF has_mentions THEN
        PERFORM members_lock(ARRAY(SELECT channel_ids[p] FROM unnest(author_places) WITH ORDINALITY AS a (p, n) ORDER BY a.n)
                             || array_agg(channel_ids[item_channels[i.n]]), author_ids || array_agg(i.named))
        FROM unnest(mention_items, mention_users) AS i (n, named);
    END IF;
    IF moves.since IS NOT NULL THEN
        first_posts := authors_count(channel_ids, moves.since, author_places, author_ids, author_posts, now_us);
    ELSE
        WITH counted AS (
            UPDATE channel_members m SET posts = m.posts + a.posts
            FROM unnest(author_places, author_ids, author_posts) WITH ORDINALITY AS a (place, author, posts, n)
            WHERE m.channel_id = channel_ids[a.place] AND m.user_id = a.author AND m.active
            RETURNING a.n, m.posts - a.posts AS posts
        )
        SELECT array_agg(c.posts) INTO first_posts FROM (SELECT * FROM counted ORDER BY n) c;
    END IF;
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
        WHERE i.key IS NOT NULL
        ORDER BY author_ids[i.author], i.key -- so that batches with the same keys cannot deadlock
        ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written <> cardinality(array_remove(keys, NULL)) THEN
            RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'a key is there already';
        END IF;
    END IF;
    IF has_files THEN
        INSERT INTO file_shares (file_id, channel_id, ts)
        SELECT f.id, channel_ids[item_channels[i.n]], first_ts[item_channels[i.n]] + item_ranks[i.n]
        FROM unnest(files) WITH ORDINALITY AS i (ids, n), unnest(string_to_array(i.ids, ',')) AS f (id);
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

-- post_batch() for a single message that is not a reply and mentions nobody: statements on single rows start several times faster.
CREATE FUNCTION post_one(batch_id text, workspace text, channel text, author text, message_preview text, message_body text,
                         message_extra text, key text, digest text, client_msg_id text, heat bigint,
                         OUT first_ts bigint[], OUT first_seq bigint[], OUT first_ord bigint[], OUT traits bigint[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now_us bigint := clock_us();
    hot head_moves;
    head record;
    own bigint;
BEGIN
    IF message_preview = '' AND message_extra IS NOT NULL THEN
        message_preview := preview(message_body, message_extra);
    END IF;
    IF heat > 0 THEN
        SELECT * INTO hot FROM hot_heads_move(ARRAY[channel], ARRAY[workspace], '{1}', '{1}', '{1}', ARRAY[author], ARRAY[message_preview], now_us);
    END IF;
    IF hot.n IS NOT NULL THEN
        SELECT hot.seq[1] AS seq, hot.ord[1] + 1 AS ord, hot.ts[1] AS ts, hot.traits[1] AS traits INTO head;
        own := hot_author_count(channel, hot.since[1], author, now_us);
    ELSE
        UPDATE channels c SET seq = c.seq + 1, ord = c.ord + 1, last_ts = greatest(now_us, c.last_ts) + 1, changed = pg_current_xact_id(),
            updated_ts = greatest(now_us, c.last_ts) + 1, latest_ts = greatest(now_us, c.last_ts) + 1, latest_user = author,
            latest_preview = message_preview,
            is_hot = CASE WHEN heat = 2 AND abs(c.last_ts - now_us) < hot_gap_us() THEN hot_allowed() ELSE false END
        WHERE c.id = channel AND (c.workspace_id = workspace) IS TRUE AND NOT c.is_archived AND NOT c.is_hot
        RETURNING c.seq, c.ord, c.last_ts AS ts, channel_traits(c.type, c.strategy_in_use, c.generation) AS traits, c.is_hot INTO head;
        IF head.is_hot THEN
            PERFORM hot_channels_begin(ARRAY[channel], now_us);
        END IF;
        UPDATE channel_members m SET posts = m.posts + 1 WHERE m.channel_id = channel AND m.user_id = author AND m.active
        RETURNING m.posts INTO own;
    END IF;
    IF head.seq IS NULL OR own IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TD001', MESSAGE = 'may not be posted';
    END IF;
    IF head.ts > now_us + clock_ahead_us() THEN
        PERFORM clock_passed(head.ts);
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

-- The root of the thread that a message belongs to; NULL: it belongs to none.
CREATE FUNCTION thread_root(channel text, message_ts bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT r.thread_ts FROM messages r WHERE r.channel_id = channel AND r.ts = message_ts AND NOT r.deleted
$$;

-- Whether `thread` is a message that accepts replies.
CREATE FUNCTION thread_exists(channel text, thread bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM messages r WHERE r.channel_id = channel AND r.ts = thread AND NOT r.deleted AND r.thread_ts IS NULL
                                              AND (r.subtype IS NULL OR r.subtype NOT LIKE 'channel\_%'))
$$;

-- Why each of these posts must be refused; NULL: there is no reason at present. A post whose key exists with the same content returns the
-- ts of that message.
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

-- Which of these rows are locked, for a batch whose wait for a lock timed out. A missing row counts as free. Never waits for a lock, and
-- holds its own only for the duration of the query.
CREATE FUNCTION members_locked(channel_ids text[], user_ids text[]) RETURNS boolean[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    locked boolean[] := array_fill(false, ARRAY[cardinality(user_ids)]);
BEGIN
    FOR n IN 1..cardinality(user_ids) LOOP
        PERFORM 1 FROM channel_members m WHERE m.channel_id = channel_ids[n] AND m.user_id = user_ids[n] FOR NO KEY UPDATE SKIP LOCKED;
        locked[n] := NOT FOUND AND EXISTS (
            SELECT 1 FROM channel_members m WHERE m.channel_id = channel_ids[n] AND m.user_id = user_ids[n]);
    END LOOP;
    RETURN locked;
END $$;

-- The same for each of these posts: 0 free; 1 its channel is locked; 2 its author, or somebody it mentions, is locked.
CREATE FUNCTION post_locked(channel_ids text[], authors text[], mention_items bigint[], mention_users text[])
RETURNS SETOF bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    free text[]; -- channels
    authors_locked boolean[] := members_locked(channel_ids, authors);
    named_locked bigint[]; -- posts that mention somebody whose row is locked
BEGIN
    SELECT array_agg(l.id) INTO free
    FROM (SELECT c.id, c.is_hot FROM channels c WHERE c.id = ANY (channel_ids) ORDER BY c.id FOR NO KEY UPDATE SKIP LOCKED) l
    WHERE NOT l.is_hot OR hot_lock(l.id, false) IS NOT NULL;
    SELECT array_agg(k.item) INTO named_locked FROM unnest(
        mention_items, members_locked(ARRAY(SELECT channel_ids[i.n] FROM unnest(mention_items) WITH ORDINALITY AS i (n, place)
                                            ORDER BY i.place), mention_users)) AS k (item, is_locked) WHERE k.is_locked;
    RETURN QUERY
    SELECT CASE WHEN a.channel <> ALL (coalesce(free, '{}')) AND EXISTS (SELECT 1 FROM channels c WHERE c.id = a.channel) THEN 1
                WHEN a.is_locked OR a.n = ANY (named_locked) THEN 2 ELSE 0 END::bigint
    FROM unnest(channel_ids, authors_locked) WITH ORDINALITY AS a (channel, is_locked, n) ORDER BY a.n;
END $$;

-- What a batch committed, by channel as post_batch() returns it, for a writer that lost the answer. Read from the batch's outbox row. No
-- row: the batch was not committed and never will be. The batch may still be on its way, in a proxy or at a server that was stalled, so an
-- empty row is inserted where there is none. If the batch has written its row but not committed, the insert waits for it; if the batch
-- arrives later, it finds its id taken. (Housekeeping deletes the empty row, as it does all rows that are done.)
CREATE FUNCTION post_batch_find(batch_id text) RETURNS TABLE (first_ts bigint[], first_seq bigint[]) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO outbox (id, done, channels, seqs, tss, kinds, users) VALUES (batch_id, true, '{}', '{}', '{}', '{}', '{}')
    ON CONFLICT (id) DO NOTHING;
    RETURN QUERY SELECT o.tss[:cardinality(o.counts)], o.seqs[:cardinality(o.counts)] FROM outbox o
                 WHERE o.id = batch_id AND o.counts IS NOT NULL;
END $$;

-- Locks the channel of a message and reads the message, for a change by `caller`; or returns an error.
CREATE FUNCTION message_lock(workspace text, caller text, channel text, message_ts bigint, OUT error text, OUT message messages,
                             OUT message_xmin xid)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    c channels;
    member boolean;
    found record;
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
        SELECT m AS message, m.xmin AS message_xmin INTO found FROM messages m
        WHERE m.channel_id = channel AND m.ts = message_ts AND NOT m.deleted;
        message := found.message;
        message_xmin := found.message_xmin;
        IF message.ts IS NULL THEN
            error := 'message_not_found';
        END IF;
    END IF;
END $$;

-- The extra of an edited message: members of `now` replace those of `was`; [] or {} removes one. `now` NULL: unchanged.
CREATE FUNCTION extra_merge(was text, now text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN now IS NULL THEN was ELSE (
        SELECT '{' || string_agg(to_json(e.key) || ':' || e.value, ',' ORDER BY e.n) || '}'
        FROM (SELECT w.key, w.value::text, w.n FROM json_each(coalesce(was, '{}')::json) WITH ORDINALITY AS w (key, value, n)
              WHERE now::json -> w.key IS NULL
              UNION ALL SELECT a.key, a.value::text, 1000 + a.n FROM json_each(now::json) WITH ORDINALITY AS a (key, value, n)
              WHERE a.value::text NOT IN ('[]', '{}')) e) END
$$;

-- Whether a message without text has anything to show.
CREATE FUNCTION extra_shows(extra text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(extra::json -> 'blocks', extra::json -> 'attachments', extra::json -> 'files') IS NOT NULL $$;

-- The extra of a reply. If its channel shows it, it has a subtype of its own, so any other is removed.
CREATE FUNCTION extra_shown(extra text, is_shown boolean) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN is_shown THEN extra_merge(extra, '{"subtype":{}}') ELSE extra END $$;

-- Replaces body and extra (NULL: unchanged), and the mentions in them; or shows a reply in the channel, without counting it. Only for the
-- author.
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
    SELECT * INTO told FROM channel_advance(channel, mention_users);
    UPDATE messages m SET body = coalesce(new_body, m.body), extra = extra_shown(extra_merge(m.extra, new_extra), is_shown),
        edited_ts = CASE WHEN is_edit THEN told.ts ELSE m.edited_ts END, edited_by = CASE WHEN is_edit THEN caller ELSE m.edited_by END,
        broadcast = m.broadcast OR is_shown, subtype = CASE WHEN is_shown THEN 'thread_broadcast' ELSE m.subtype END
    WHERE m.channel_id = channel AND m.ts = message_ts;
    UPDATE channels c SET latest_preview = preview(coalesce(new_body, (found.message).body), extra_merge((found.message).extra, new_extra))
    WHERE c.id = channel AND c.latest_ts = message_ts;
    INSERT INTO changes (channel_id, seq, kind, message_ts, message_xmin, user_id, event_ts, mentioned)
    VALUES (channel, told.seq, 'edit', message_ts, found.message_xmin, caller, told.ts,
            mentions_replace(found.message, CASE WHEN new_body IS NULL THEN 0 ELSE 1 END + CASE WHEN has_blocks THEN 2 ELSE 0 END,
                             mention_users, mention_sources));
    PERFORM outbox_put(outbox_id, channel, told.seq, message_ts, 'edit', caller, (found.message).body,
                       extra_shown((found.message).extra, is_shown));
    IF (found.message).thread_ts IS NOT NULL THEN
        PERFORM threads_mention(outbox_id, h.mentioned) FROM changes h WHERE h.channel_id = channel AND h.seq = told.seq;
    END IF;
    RETURN QUERY SELECT NULL::text, told.seq, told.ts;
END $$;

-- Leaves a tombstone without a body. Only for the author and admins.
CREATE FUNCTION message_delete(outbox_id text, workspace text, caller text, is_admin boolean, channel text, message_ts bigint)
RETURNS TABLE (error text, seq bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    told record;
    latest messages;
    was_latest boolean;
    named text[]; -- users that it mentioned
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
    SELECT * INTO told FROM channel_advance(channel, '{}');
    UPDATE messages m SET deleted = true, body = '', extra = NULL WHERE m.channel_id = channel AND m.ts = message_ts;
    PERFORM file_shares_end(channel, message_ts);
    IF (found.message).counted THEN
        UPDATE channels c SET deleted_ord = greatest(c.deleted_ord, (found.message).ord) WHERE c.id = channel
        RETURNING c.latest_ts = message_ts INTO was_latest;
    END IF;
    IF was_latest THEN -- search from here, since many messages after it may be deleted
        SELECT * INTO latest FROM messages m WHERE m.channel_id = channel AND m.ts < message_ts AND m.counted AND NOT m.deleted
        ORDER BY m.ts DESC LIMIT 1;
        UPDATE channels c SET latest_ts = coalesce(latest.ts, 0), latest_user = coalesce(latest.user_id, ''),
            latest_preview = preview(coalesce(latest.body, ''), latest.extra)
        WHERE c.id = channel;
    END IF;
    IF (found.message).thread_ts IS NOT NULL THEN
        PERFORM thread_reply_deleted(channel, (found.message).thread_ts, message_ts, (found.message).user_id);
    END IF;
    IF (found.message).noted THEN
        PERFORM notes_drop(channel, message_ts);
    END IF;
    WITH gone AS (DELETE FROM mentions n WHERE n.channel_id = channel AND n.ts = message_ts RETURNING n.user_id)
    SELECT array_agg(g.user_id) INTO named FROM gone g;
    INSERT INTO changes (channel_id, seq, kind, message_ts, message_xmin, user_id, event_ts, mentioned)
    VALUES (channel, told.seq, 'delete', message_ts, found.message_xmin, caller, told.ts, named);
    PERFORM outbox_put(outbox_id, channel, told.seq, message_ts, 'delete', caller, (found.message).body, (found.message).extra);
    RETURN QUERY SELECT NULL::text, told.seq;
END $$;
