-- SPDX-License-Identifier: Apache-2.0
-- The numbering of a channel's events, the outbox, and reading events back.

-- The eras of this database, the newest last; begins a new one if necessary. After a crash or a failover, Postgres gives out transaction
-- ids again whose first use had not reached the log on disk. Each connection calls this before anything else, so everything written in an
-- era has a transaction id of `first_xid` or above. A transaction id seen in an earlier era remains comparable as long as it is not above
-- that.
CREATE FUNCTION eras_begin() RETURNS SETOF eras LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    -- Changes when Postgres starts, when it recovers from a crash (its statistics are lost), and when a standby is promoted.
    found text := concat_ws(' ', pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time(),
                            left(pg_walfile_name(pg_current_wal_insert_lsn()), 8));
BEGIN
    IF NOT EXISTS (SELECT 1 FROM eras e WHERE e.life = found) THEN
        PERFORM set_config('synchronous_commit', 'local', true); -- reads go on without a standby to wait for
        INSERT INTO eras (life, number, first_xid)
        SELECT found, greatest(clock_us(), max(e.number) + 1), pg_current_xact_id() FROM eras e
        ON CONFLICT (life) DO NOTHING;
    END IF;
    RETURN QUERY SELECT * FROM eras e ORDER BY e.number;
END $$;

-- The text of a block, or of a part of one, as notifications show it: without buttons and input fields. The items of an array are separated
-- by `gap`. A message may have thousands of items; 20 are more than a preview has.
CREATE FUNCTION block_text(part jsonb, gap text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    shown text := '';
BEGIN
    IF jsonb_typeof(part) = 'array' THEN
        FOR i IN 0 .. least(jsonb_array_length(part), 20) - 1 LOOP
            shown := concat_ws(gap, NULLIF(shown, ''), NULLIF(block_text(part -> i, ' '), ''));
            EXIT WHEN length(shown) > 80;
        END LOOP;
        RETURN shown;
    END IF;
    RETURN coalesce(CASE part ->> 'type'
        WHEN 'emoji' THEN ':' || (part ->> 'name') || ':'
        WHEN 'user' THEN '<@' || (part ->> 'user_id') || '>'
        WHEN 'channel' THEN '<#' || (part ->> 'channel_id') || '>'
        WHEN 'broadcast' THEN '<!' || (part ->> 'range') || '>'
        WHEN 'link' THEN coalesce(NULLIF(part ->> 'text', ''), part ->> 'url')
        WHEN 'image' THEN coalesce(NULLIF(block_text(part -> 'title', ' '), ''), part ->> 'alt_text')
        WHEN 'actions' THEN ''
        WHEN 'input' THEN ''
        ELSE concat_ws(' ', NULLIF(CASE WHEN jsonb_typeof(part -> 'text') = 'string' THEN part ->> 'text'
                                        ELSE block_text(part -> 'text', ' ') END, ''),
                       NULLIF(block_text(part -> 'fields', ' '), ''),
                       NULLIF(block_text(part -> 'elements',
                                         CASE WHEN part ->> 'type' IN ('rich_text_section', 'rich_text_quote', 'rich_text_preformatted')
                                              THEN '' ELSE ' ' END), '')) END, '');
END $$;

-- What a notification shows of a message: its text, otherwise that of its blocks, otherwise that of an attachment, otherwise that there is a file.
CREATE FUNCTION text_shown(body text, extra text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    shown text := body;
BEGIN
    IF extra IS NOT NULL AND body ~ '^\s*$' THEN
        shown := btrim(block_text(extra::jsonb -> 'blocks', ' '));
        IF shown IS NULL OR shown = '' THEN
            SELECT a.text INTO shown
            FROM (SELECT coalesce(NULLIF(btrim(e.item ->> 'fallback'), ''), NULLIF(btrim(e.item ->> 'text'), ''),
                                  NULLIF(btrim(block_text(e.item -> 'blocks', ' ')), '')) AS text, e.n
                  FROM jsonb_array_elements(extra::jsonb -> 'attachments') WITH ORDINALITY AS e (item, n)) a
            WHERE a.text IS NOT NULL ORDER BY a.n LIMIT 1;
        END IF;
        IF coalesce(shown, '') = '' AND extra::jsonb ? 'files' THEN
            shown := 'sent a file';
        END IF;
    END IF;
    RETURN coalesce(shown, '');
END $$;

-- The beginning of it in one line, for a sidebar. That shows at most 80 characters, and sees by the next one whether a grapheme cluster
-- ends there.
CREATE FUNCTION preview(body text, extra text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT left(translate(text_shown(body, extra), E'\n\r\t', '   '), 81)
$$;

-- A ts as clients see it.
CREATE FUNCTION ts_text(ts bigint) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT lpad((ts / 1000000)::text, 10, '0') || '.' || lpad((ts % 1000000)::text, 6, '0') $$;

-- Takes the next seq and ts of a channel. The caller holds the channel's row lock, and names the members whose rows it will lock next.
CREATE FUNCTION channel_advance(channel text, members text[], OUT seq bigint, OUT ts bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM channel_cool(channel, members);
    UPDATE channels c SET seq = c.seq + 1, last_ts = greatest(clock_us(), c.last_ts + 1), changed = pg_current_xact_id()
    WHERE c.id = channel RETURNING c.seq, c.last_ts INTO channel_advance.seq, channel_advance.ts;
    IF channel_advance.ts > clock_us() + clock_ahead_us() THEN
        PERFORM clock_passed(channel_advance.ts);
    END IF;
END $$;

-- Adds events of one kind to the outbox row `outbox_id` of this transaction, which may have other events too. Empty or NULL arrays add
-- nothing. The caller chooses the id, so that it can find the row even if the answer is lost.
CREATE FUNCTION outbox_add(outbox_id text, channel_ids text[], seqs bigint[], tss bigint[], kind text, users text[],
                           previous text DEFAULT NULL, previous_extra text DEFAULT NULL) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO outbox (id, channels, seqs, tss, kinds, users, previous, previous_extra)
    SELECT outbox_id, channel_ids, outbox_add.seqs, outbox_add.tss, array_fill(kind, ARRAY[cardinality(channel_ids)]), outbox_add.users,
           outbox_add.previous, outbox_add.previous_extra
    WHERE cardinality(channel_ids) > 0
    ON CONFLICT (id) DO UPDATE SET channels = outbox.channels || excluded.channels, seqs = outbox.seqs || excluded.seqs,
        tss = outbox.tss || excluded.tss, kinds = outbox.kinds || excluded.kinds, users = outbox.users || excluded.users
$$;

-- Adds a single event.
CREATE FUNCTION outbox_put(outbox_id text, channel text, seq bigint, ts bigint, kind text, about text,
                           previous text DEFAULT NULL, previous_extra text DEFAULT NULL) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT outbox_add(outbox_id, ARRAY[channel], ARRAY[seq], ARRAY[ts], kind, ARRAY[about], previous, previous_extra)
$$;

-- Writes a notice ("ann has joined"): a message of its own in the history, which is never counted.
CREATE FUNCTION channel_notice(channel text, author text, subtype text, body text, extra text,
                               OUT seq bigint, OUT ts bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SELECT a.seq, a.ts INTO channel_notice.seq, channel_notice.ts FROM channel_advance(channel, ARRAY[author]) a;
    INSERT INTO messages (channel_id, ts, seq, ord, user_id, counted, subtype, body, extra)
    SELECT c.id, c.last_ts, c.seq, c.ord, author, false, subtype, body, extra FROM channels c WHERE c.id = channel;
END $$;

-- A ts such that exactly the messages with a seq of at most `wanted` lie at or before it. Seq and ts rise together in a channel, so a
-- binary search of the primary key finds it, and posts need not maintain an index by seq.
CREATE FUNCTION message_ts_at_seq(channel text, wanted bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    low bigint;
    high bigint;
    middle bigint;
    found_seq bigint;
    found_ts bigint;
BEGIN
    SELECT c.last_ts INTO high FROM channel_heads c WHERE c.id = channel;
    SELECT m.ts - 1 INTO low FROM messages m WHERE m.channel_id = channel ORDER BY m.ts LIMIT 1;
    IF low IS NULL OR wanted <= 0 THEN
        RETURN 0;
    END IF;
    WHILE low < high LOOP
        middle := low + (high - low + 1) / 2;
        SELECT m.seq, m.ts INTO found_seq, found_ts FROM messages m
        WHERE m.channel_id = channel AND m.ts <= middle ORDER BY m.ts DESC LIMIT 1;
        IF found_seq IS NULL OR found_seq <= wanted THEN
            low := middle;
        ELSE
            high := found_ts - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- PL/pgSQL, here and below, for parts that are rarely needed: a sub-select costs its start in every statement that contains it, even if it
-- is never reached.
CREATE FUNCTION message_body(channel text, at bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT m.body FROM messages m WHERE m.channel_id = channel AND m.ts = at);
END $$;

-- What was noted about a message, as members of its object: its reactions, each with at most 50 of its users, `viewer` first; where it is
-- pinned. NULL: nothing. Names and ids have no characters that JSON escapes.
CREATE FUNCTION message_notes(channel text, at bigint, viewer text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT NULLIF(concat_ws(',',
            '"reactions":[' || (
                SELECT string_agg('{"name":"' || c.name || '","users":[' || u.ids || '],"count":' || c.count || '}', ',' ORDER BY c.seq)
                FROM reaction_counts c CROSS JOIN LATERAL (
                    SELECT string_agg('"' || w.user_id || '"', ',' ORDER BY w.user_id <> viewer, w.seq) AS ids
                    FROM (SELECT k.user_id, k.seq FROM (
                              (SELECT r.user_id, r.seq FROM reactions r
                               WHERE r.ts = at AND r.channel_id = channel AND r.user_id = viewer AND r.name = c.name)
                              UNION
                              (SELECT r.user_id, r.seq FROM reactions r
                               WHERE r.ts = at AND r.channel_id = channel AND r.name = c.name ORDER BY r.seq LIMIT 50)) k
                          ORDER BY k.user_id <> viewer, k.seq LIMIT 50) w) u
                WHERE c.ts = at AND c.channel_id = channel) || ']',
            (SELECT '"pinned_to":["' || p.channel_id || '"]' FROM pins p WHERE p.channel_id = channel AND p.ts = at)), ''));
END $$;

-- The app that a bot belongs to, or an id in place of one: Slack's bots have all an app. PL/pgSQL, as above.
CREATE FUNCTION bot_app_id(bot_user text, bot text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT a.id FROM apps a WHERE a.bot_user_id = bot_user ORDER BY a.created, a.id LIMIT 1), 'A' || substr(bot, 2));
END $$;

-- A message with all that is needed to render it. src/chat/message.c reads the columns after channel_id by position.
CREATE VIEW message_rows AS
    SELECT m.channel_id, m.ts, m.seq, m.ord, m.user_id, u.bot_id, m.subtype, CASE WHEN m.deleted THEN '' ELSE m.body END AS body,
           CASE WHEN m.deleted THEN NULL ELSE m.extra END AS extra, m.thread_ts, t.user_id AS parent_user, m.broadcast,
           m.client_msg_id, m.edited_ts, m.edited_by, m.deleted, m.counted, coalesce(t.reply_count, 0) AS reply_count,
           coalesce(t.latest_reply, 0) AS latest_reply, array_to_string(t.reply_users, ',') AS reply_users,
           CASE WHEN m.broadcast THEN message_body(m.channel_id, m.thread_ts) END AS root_body,
           coalesce(t.reply_users_count, 0) AS reply_users_count,
           CASE WHEN u.bot_id IS NOT NULL THEN bot_app_id(u.id, u.bot_id) END AS bot_app_id,
           CASE WHEN u.bot_id IS NOT NULL THEN u.real_name END AS bot_name, CASE WHEN u.bot_id IS NOT NULL THEN u.updated END AS bot_updated,
           m.noted AND NOT m.deleted AS noted
    FROM messages m
    LEFT JOIN users u ON u.id = m.user_id
    -- OFFSET 0: one lookup per message, never all threads of its channel.
    LEFT JOIN LATERAL (SELECT * FROM threads h WHERE h.channel_id = m.channel_id AND h.ts = coalesce(m.thread_ts, m.ts) OFFSET 0) t ON true;

CREATE FUNCTION kind_of_subtype(subtype text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE subtype WHEN 'channel_join' THEN 'join' WHEN 'channel_open' THEN 'join' WHEN 'channel_leave' THEN 'leave'
                        WHEN 'channel_archive' THEN 'archive' WHEN 'channel_unarchive' THEN 'unarchive'
                        WHEN 'channel_name' THEN 'rename' ELSE 'post' END
$$;

-- The first `count` events of a channel after `after_seq`.
CREATE FUNCTION channel_events(channel text, after_seq bigint, count integer)
RETURNS TABLE (seq bigint, kind text, event_ts bigint, actor text, message_ts bigint, note text, note_data text) LANGUAGE sql STABLE AS $$
    WITH start AS MATERIALIZED (SELECT message_ts_at_seq(channel, after_seq) AS ts)
    (SELECT m.seq, kind_of_subtype(m.subtype), m.ts, m.user_id, m.ts, NULL, NULL
     FROM messages m WHERE m.channel_id = channel AND m.ts > (SELECT start.ts FROM start) AND m.seq > after_seq
     ORDER BY m.ts LIMIT count)
    UNION ALL
    (SELECT e.seq, e.kind, e.event_ts, e.user_id, e.message_ts, e.name, e.data FROM changes e
     WHERE e.channel_id = channel AND e.seq > after_seq ORDER BY e.seq LIMIT count)
    ORDER BY 1 LIMIT count
$$;

-- The events of an outbox row, one by one. A batch has at most 1,000 posts (TIDINGS_BATCH_MAX).
CREATE FUNCTION outbox_entries(o outbox) RETURNS TABLE (channel text, seq bigint, ts bigint, kind text, about text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT e.channel, e.seq + e.n, e.ts + e.n, e.kind, e.about
    FROM (SELECT g.*, generate_series(0, least(coalesce(g.count, 1), 1000) - 1) AS n
          FROM unnest(o.channels, o.seqs, o.tss, o.counts, o.kinds, o.users) AS g (channel, seq, ts, count, kind, about)) e
$$;

-- The events of outbox rows, for the relay, each with the current state that it refers to. src/fanout/load.c reads the columns by position;
-- those of message_rows come last. The planner cannot know how many events a row has, and would hash all users for a single one, so only
-- nested loops are allowed.
CREATE FUNCTION outbox_events(ids text[]) RETURNS TABLE (
    outbox_id text, kind text, channel_id text, workspace_id text, seq bigint, event_ts bigint, about text, previous text,
    previous_extra text, channel_name text, type smallint, creator text, created bigint, head_seq bigint, head_ord bigint,
    epoch bigint, cursor_ts bigint, cursor_seq bigint, cursor_ord bigint, own bigint, posts bigint, member_seq bigint,
    active boolean, strategy_in_use smallint, generation bigint, number integer, note text, note_data text,
    ts bigint, message_seq bigint, ord bigint, user_id text, bot_id text, subtype text, body text, extra text, thread_ts bigint,
    parent_user text, broadcast boolean, client_msg_id text, edited_ts bigint, edited_by text, deleted boolean,
    counted boolean, reply_count integer, latest_reply bigint, reply_users text, root_body text,
    reply_users_count integer, bot_app_id text, bot_name text, bot_updated bigint, notes text
) LANGUAGE sql STABLE SET enable_hashjoin = off SET enable_mergejoin = off AS $$
    SELECT o.id, e.kind, c.id, c.workspace_id, e.seq, coalesce(h.event_ts, e.ts), coalesce(e.about, r.user_id, ''), o.previous,
           o.previous_extra, c.name, c.type, c.creator, c.created, coalesce(s.seq, c.seq), coalesce(s.ord, c.ord),
           m.epoch, m.ts, m.seq, m.ord, m.own, coalesce(s.posts, m.posts), m.member_seq, m.active, c.strategy_in_use, c.generation, m.number,
           h.name, h.data, r.ts, r.seq, r.ord, r.user_id, r.bot_id, r.subtype, r.body, r.extra, r.thread_ts, r.parent_user, r.broadcast,
           r.client_msg_id, r.edited_ts, r.edited_by, r.deleted, r.counted, r.reply_count, r.latest_reply, r.reply_users, r.root_body,
           r.reply_users_count, r.bot_app_id, r.bot_name, r.bot_updated,
           CASE WHEN r.noted AND e.kind <> 'note' THEN message_notes(e.channel, r.ts, '') END
    FROM outbox o
    CROSS JOIN LATERAL outbox_entries(o) AS e
    JOIN channels c ON c.id = e.channel
    LEFT JOIN changes h ON h.channel_id = e.channel AND h.seq = e.seq AND e.kind IN ('edit', 'delete', 'note')
    LEFT JOIN channel_members m ON m.channel_id = e.channel AND m.user_id = e.about
    LEFT JOIN LATERAL hot_state(c.id, c.is_hot, m.user_id) s ON true
    -- OFFSET 0: no lookup at all for kinds without a message, such as the 500 marks of a markAll.
    LEFT JOIN LATERAL (SELECT * FROM message_rows w WHERE w.channel_id = e.channel AND w.ts = e.ts
                       AND e.kind NOT IN ('mark', 'thread_mark', 'thread_follow', 'strategy') OFFSET 0) r ON true
    WHERE o.id = ANY (ids)
    ORDER BY o.created, o.id, e.channel, e.seq
$$;

-- Leftovers: rows that were not finished within `age_ms`, because their writer died or could not relay them; likewise rows of a time that
-- is yet to come, since the clock was set back.
CREATE FUNCTION outbox_leftovers(age_ms bigint, count integer) RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
    SELECT id FROM outbox_rows WHERE NOT done AND (created < now() - make_interval(secs => age_ms / 1000.0) OR created > now() + interval '1 minute')
    ORDER BY created LIMIT count
$$;
