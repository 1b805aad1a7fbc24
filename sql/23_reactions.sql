-- SPDX-License-Identifier: Apache-2.0
-- Reactions and pins. They are written under the row lock of their channel; each change is a note: an event with a seq that counts for nobody.

-- Most names of reactions to a message; names of one user's; pins in a channel.
CREATE FUNCTION reaction_names_max() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 50 $$;
CREATE FUNCTION reactions_of_user_max() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 20 $$;
CREATE FUNCTION pins_max() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 100 $$;

-- Takes the next seq and ts of a channel, hot or not. A hot channel stays hot. The caller holds the channel's row lock.
CREATE FUNCTION channel_advance_hot(channel text, OUT seq bigint, OUT ts bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last bigint := hot_lock(channel, true);
    now_us bigint := clock_us();
BEGIN
    IF last IS NULL THEN
        UPDATE channels c SET seq = c.seq + 1, last_ts = greatest(now_us, c.last_ts + 1), changed = pg_current_xact_id()
        WHERE c.id = channel RETURNING c.seq, c.last_ts INTO channel_advance_hot.seq, channel_advance_hot.ts;
    ELSE
        UPDATE hot_heads h SET turn = greatest(h.turn, hot_turn(now_us)), seq = h.seq + 1, last_ts = greatest(now_us, h.last_ts + 1),
            changed = pg_current_xact_id()
        WHERE h.channel_id = channel AND h.turn = last RETURNING h.seq, h.last_ts INTO channel_advance_hot.seq, channel_advance_hot.ts;
    END IF;
    IF channel_advance_hot.ts > now_us + clock_ahead_us() THEN
        PERFORM clock_passed(channel_advance_hot.ts);
    END IF;
END $$;

-- Writes a note about a message, which the caller has locked by message_lock(). `frame`: the members of its frame that are its own.
CREATE FUNCTION note_put(outbox_id text, message messages, message_xmin xid, caller text, type text, frame text,
                         OUT seq bigint, OUT ts bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SELECT a.seq, a.ts INTO note_put.seq, note_put.ts FROM channel_advance_hot(message.channel_id) a;
    IF NOT message.noted THEN -- a plan that looks up the one row, and no rewrite for later notes
        UPDATE messages m SET noted = true WHERE m.channel_id = message.channel_id AND m.ts = message.ts;
    END IF;
    INSERT INTO changes (channel_id, seq, kind, message_ts, message_xmin, user_id, event_ts, name, data)
    VALUES (message.channel_id, note_put.seq, 'note', message.ts, CASE WHEN NOT message.noted THEN message_xmin END, caller, note_put.ts, type,
            frame);
    PERFORM outbox_put(outbox_id, message.channel_id, note_put.seq, message.ts, 'note', caller);
END $$;

-- The author of a message as frames name them; NULL: a webhook, which is no user.
CREATE FUNCTION item_user(author text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT u.id FROM users u WHERE u.id = author AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.id = u.bot_id)
$$;

-- The frame of a reaction. `count`: how many users now react so.
CREATE FUNCTION reaction_frame(message messages, caller text, emoji text, count bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT json_strip_nulls(json_build_object(
        'user', caller, 'reaction', emoji, 'item_user', item_user(message.user_id), 'count', count,
        'item', json_build_object('type', 'message', 'channel', message.channel_id, 'ts', ts_text(message.ts))))::text
$$;

-- Why `caller` may not react to a message so; NULL: nothing stands against it.
CREATE FUNCTION reaction_refusal(channel text, message_ts bigint, caller text, emoji text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    own text[] := ARRAY(SELECT r.name FROM reactions r WHERE r.ts = message_ts AND r.channel_id = channel AND r.user_id = caller);
BEGIN
    IF emoji = ANY (own) THEN
        RETURN 'already_reacted';
    ELSIF cardinality(own) >= reactions_of_user_max() THEN
        RETURN 'too_many_reactions';
    ELSIF (SELECT count(*) >= reaction_names_max() AND bool_and(c.name <> emoji) FROM reaction_counts c
           WHERE c.ts = message_ts AND c.channel_id = channel) THEN
        RETURN 'too_many_emoji';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION reactions_add(outbox_id text, workspace text, caller text, channel text, message_ts bigint, emoji text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    held record;
    at_seq bigint; -- of the note
    at_us bigint;
    total bigint;
BEGIN
    SELECT * INTO held FROM message_lock(workspace, caller, channel, message_ts);
    error := coalesce(held.error, reaction_refusal(channel, message_ts, caller, emoji));
    IF error IS NULL THEN
        UPDATE reaction_counts c SET count = c.count + 1 WHERE c.ts = message_ts AND c.channel_id = channel AND c.name = emoji
        RETURNING c.count INTO total;
        SELECT n.seq, n.ts INTO at_seq, at_us FROM note_put(outbox_id, held.message, held.message_xmin, caller, 'reaction_added',
                                                             reaction_frame(held.message, caller, emoji, coalesce(total, 1))) n;
        IF total IS NULL THEN
            INSERT INTO reaction_counts (ts, channel_id, name, seq, count) VALUES (message_ts, channel, emoji, at_seq, 1);
        END IF;
        INSERT INTO reactions (ts, channel_id, user_id, name, seq, event_ts) VALUES (message_ts, channel, caller, emoji, at_seq, at_us);
    END IF;
    RETURN QUERY SELECT reactions_add.error, '{"seq":' || at_seq || '}', reactions_add.error IS NULL;
END $$;

CREATE FUNCTION reactions_remove(outbox_id text, workspace text, caller text, channel text, message_ts bigint, emoji text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    held record;
    at_seq bigint; -- of the note
    total bigint;
BEGIN
    SELECT * INTO held FROM message_lock(workspace, caller, channel, message_ts);
    error := held.error;
    IF error IS NULL THEN
        DELETE FROM reactions r WHERE r.ts = message_ts AND r.channel_id = channel AND r.user_id = caller AND r.name = emoji;
        error := CASE WHEN NOT FOUND THEN 'no_reaction' END;
    END IF;
    IF error IS NULL THEN
        UPDATE reaction_counts c SET count = c.count - 1 WHERE c.ts = message_ts AND c.channel_id = channel AND c.name = emoji
        RETURNING c.count INTO total;
        IF total = 0 THEN
            DELETE FROM reaction_counts c WHERE c.ts = message_ts AND c.channel_id = channel AND c.name = emoji;
        END IF;
        SELECT n.seq INTO at_seq FROM note_put(outbox_id, held.message, held.message_xmin, caller, 'reaction_removed',
                                                      reaction_frame(held.message, caller, emoji, total)) n;
    END IF;
    RETURN QUERY SELECT reactions_remove.error, '{"seq":' || at_seq || '}', reactions_remove.error IS NULL;
END $$;

-- The newest messages to which `target` has reacted before (`before_ts`, `before_channel`), where `caller` is a member: after `skip` of them
-- at most `count`. A message stands where its latest reaction is. No more than 1,000 reactions are looked at: `total` is the number of
-- messages among these, and `end_…` the last one if there may be more. One row at least.
CREATE FUNCTION reactions_list(workspace text, caller text, target text, before_ts bigint, before_channel text, skip bigint, count bigint)
RETURNS TABLE (error text, total bigint, end_ts bigint, end_channel text, event_ts bigint, channel_id text, ts bigint) LANGUAGE sql STABLE AS $$
    WITH page AS MATERIALIZED (
        SELECT r.* FROM reactions r
        WHERE r.user_id = target AND (r.event_ts, r.channel_id) < (before_ts, before_channel) ORDER BY r.event_ts DESC, r.channel_id DESC LIMIT 1000
    ), shown AS MATERIALIZED (
        SELECT p.event_ts, p.channel_id, p.ts FROM page p
        JOIN channel_members i ON i.channel_id = p.channel_id AND i.user_id = caller AND i.active
        JOIN messages m ON m.channel_id = p.channel_id AND m.ts = p.ts AND NOT m.deleted
        WHERE NOT EXISTS (SELECT 1 FROM reactions x WHERE x.ts = p.ts AND x.channel_id = p.channel_id AND x.user_id = target
                          AND x.event_ts > p.event_ts)
    )
    SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM users u WHERE u.id = target AND u.workspace_id = workspace) THEN 'user_not_found' END,
           (SELECT count(*) FROM shown), e.event_ts, e.channel_id, s.event_ts, s.channel_id, s.ts
    FROM (SELECT 1) one
    LEFT JOIN (SELECT p.event_ts, p.channel_id FROM page p ORDER BY p.event_ts DESC, p.channel_id DESC OFFSET 999) e ON true
    LEFT JOIN (SELECT * FROM shown w ORDER BY w.event_ts DESC, w.channel_id DESC LIMIT reactions_list.count OFFSET skip) s ON true
    ORDER BY s.event_ts DESC, s.channel_id DESC
$$;

-- The frame of a pin. `item` comes last: src/chat/frame.c adds the message to it.
CREATE FUNCTION pin_frame(message messages, caller text, pinned pins, count bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT json_strip_nulls(json_build_object(
        'user', caller, 'channel_id', message.channel_id, 'item_user', item_user(message.user_id), 'pin_count', count, 'has_pins', count > 0,
        'pinned_info', json_build_object('channel', message.channel_id, 'pinned_by', pinned.user_id, 'pinned_ts', pinned.event_ts / 1000000),
        'item', json_build_object('type', 'message', 'channel', message.channel_id, 'created', pinned.event_ts / 1000000,
                                  'created_by', pinned.user_id)))::text
$$;

-- The pins of a channel whose messages stand.
CREATE VIEW pin_rows AS
    SELECT p.* FROM pins p JOIN messages m ON m.channel_id = p.channel_id AND m.ts = p.ts AND NOT m.deleted;

CREATE FUNCTION pin_count(channel text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM pins p WHERE p.channel_id = channel) THEN -- the usual case has a plan that begins at once
        RETURN (SELECT count(*) FROM pin_rows p WHERE p.channel_id = channel);
    END IF;
    RETURN 0;
END $$;

CREATE FUNCTION pins_add(outbox_id text, workspace text, caller text, channel text, message_ts bigint)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    held record;
    at_seq bigint; -- of the note
    total bigint;
    pinned pins;
BEGIN
    SELECT * INTO held FROM message_lock(workspace, caller, channel, message_ts);
    total := pin_count(channel);
    error := CASE WHEN held.error IS NOT NULL THEN held.error
                  WHEN (held.message).subtype LIKE 'channel\_%' THEN 'not_pinnable'
                  WHEN EXISTS (SELECT 1 FROM pins p WHERE p.channel_id = channel AND p.ts = message_ts) THEN 'already_pinned'
                  WHEN total >= pins_max() THEN 'too_many_pins' END;
    IF error IS NULL THEN
        INSERT INTO pins (channel_id, ts, user_id, event_ts) VALUES (channel, message_ts, caller, clock_us()) RETURNING * INTO pinned;
        SELECT n.seq INTO at_seq FROM note_put(outbox_id, held.message, held.message_xmin, caller, 'pin_added',
                                                      pin_frame(held.message, caller, pinned, total + 1)) n;
    END IF;
    RETURN QUERY SELECT pins_add.error, '{"seq":' || at_seq || '}', pins_add.error IS NULL;
END $$;

CREATE FUNCTION pins_remove(outbox_id text, workspace text, caller text, channel text, message_ts bigint)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    held record;
    at_seq bigint; -- of the note
    pinned pins;
BEGIN
    SELECT * INTO held FROM message_lock(workspace, caller, channel, message_ts);
    error := held.error;
    IF error IS NULL THEN
        DELETE FROM pins p WHERE p.channel_id = channel AND p.ts = message_ts RETURNING * INTO pinned;
        error := CASE WHEN NOT FOUND THEN 'no_pin' END;
    END IF;
    IF error IS NULL THEN
        SELECT n.seq INTO at_seq FROM note_put(outbox_id, held.message, held.message_xmin, caller, 'pin_removed',
                                                      pin_frame(held.message, caller, pinned, pin_count(channel))) n;
    END IF;
    RETURN QUERY SELECT pins_remove.error, '{"seq":' || at_seq || '}', pins_remove.error IS NULL;
END $$;

-- A message was deleted, and with it what was noted about it. The caller holds the channel's lock.
CREATE FUNCTION notes_drop(channel text, message_ts bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pins p WHERE p.channel_id = channel AND p.ts = message_ts;
    DELETE FROM reaction_counts c WHERE c.ts = message_ts AND c.channel_id = channel;
    INSERT INTO reactions_gone (ts, channel_id)
    SELECT message_ts, channel WHERE EXISTS (SELECT 1 FROM reactions r WHERE r.ts = message_ts AND r.channel_id = channel);
END $$;

-- Deletes some reactions of a message that was deleted; returns how many.
CREATE FUNCTION reactions_gone_delete() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    message reactions_gone;
    rows bigint;
BEGIN
    SELECT * INTO message FROM reactions_gone g ORDER BY g.ts, g.channel_id LIMIT 1;
    IF message.ts IS NULL THEN
        RETURN 0;
    END IF;
    DELETE FROM reactions r WHERE r.ctid = ANY (ARRAY(
        SELECT x.ctid FROM reactions x WHERE x.ts = message.ts AND x.channel_id = message.channel_id LIMIT 500));
    GET DIAGNOSTICS rows = ROW_COUNT;
    IF rows < 500 THEN
        DELETE FROM reactions_gone g WHERE g.ts = message.ts AND g.channel_id = message.channel_id;
        rows := rows + 1;
    END IF;
    RETURN rows;
END $$;

-- Deletes reactions to deleted messages, and to messages of months that were dropped, until `until`. `has_more`: time was up.
CREATE FUNCTION reactions_expire(until timestamptz, OUT rows bigint, OUT has_more boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    kept_from bigint := month_first();
    batch bigint;
BEGIN
    rows := 0;
    LOOP
        batch := reactions_gone_delete();
        WITH gone AS (
            DELETE FROM reactions r WHERE r.ctid = ANY (ARRAY(SELECT x.ctid FROM reactions x WHERE x.ts < kept_from ORDER BY x.ts LIMIT 500))
            RETURNING 1
        ), uncounted AS (
            DELETE FROM reaction_counts c
            WHERE c.ctid = ANY (ARRAY(SELECT x.ctid FROM reaction_counts x WHERE x.ts < kept_from ORDER BY x.ts LIMIT 500)) RETURNING 1
        ) SELECT batch + (SELECT count(*) FROM gone) + (SELECT count(*) FROM uncounted) INTO batch;
        rows := rows + batch;
        has_more := batch > 0;
        EXIT WHEN NOT has_more OR clock_timestamp() >= until;
    END LOOP;
END $$;
