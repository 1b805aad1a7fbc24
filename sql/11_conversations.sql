-- SPDX-License-Identifier: Apache-2.0
-- Direct conversations; topic, purpose and name of channels. Functions return the same columns as in 05_channels.sql.

-- Adds a member to a new direct conversation. It is closed for them until the first message, except for the user who opened it.
CREATE FUNCTION direct_member_add(outbox_id text, channel text, member text, is_open boolean) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    told record;
BEGIN
    SELECT * INTO told FROM channel_notice(channel, member, 'channel_open', '', NULL);
    UPDATE channels c SET member_count = c.member_count + 1 WHERE c.id = channel;
    INSERT INTO channel_members (channel_id, user_id, member_seq, ts, seq, ord, closed_ord)
    VALUES (channel, member, told.seq, told.ts, told.seq, 0, CASE WHEN NOT is_open THEN 0 END);
    PERFORM outbox_put(outbox_id, channel, told.seq, told.ts, 'join', member);
END $$;

-- The direct conversation of exactly these users (sorted); created if missing, which `made` reports. Concurrent calls create only one.
CREATE FUNCTION direct_make(outbox_id text, workspace text, caller text, new_id text, everyone text[], OUT channel text, OUT made boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    key text := array_to_string(everyone, ',');
    is_group boolean := cardinality(everyone) > 2;
    group_name text := (SELECT 'mpdm-' || string_agg(u.name, '--' ORDER BY u.name) FROM users u WHERE u.id = ANY (everyone));
    attempt integer := 1;
BEGIN
    LOOP
        SELECT c.id INTO channel FROM channels c WHERE c.workspace_id = workspace AND c.people = key;
        made := false;
        EXIT WHEN channel IS NOT NULL;
        INSERT INTO channels AS c (id, workspace_id, name, type, is_private, people, creator)
        VALUES (CASE WHEN is_group THEN 'G' ELSE 'D' END || substr(new_id, 2), workspace,
                CASE WHEN is_group THEN group_name || '-' || attempt ELSE key END, CASE WHEN is_group THEN 2 ELSE 3 END, true, key, caller)
        ON CONFLICT DO NOTHING RETURNING c.id INTO channel;
        made := channel IS NOT NULL;
        EXIT WHEN made;
        attempt := attempt + 1; -- just created by another call, or the name belongs to another channel
    END LOOP;
    IF made THEN
        PERFORM direct_member_add(outbox_id, channel, e.id, e.id = caller) FROM unnest(everyone) AS e (id) ORDER BY e.id <> caller, e.id;
    END IF;
END $$;

-- Why these users cannot have a direct conversation; NULL: they can.
CREATE FUNCTION direct_refusal(workspace text, everyone text[]) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN cardinality(everyone) > 9 THEN 'too_many_users' WHEN bool_or(u.id IS NULL) THEN 'user_not_found'
                WHEN bool_or(NOT u.active) THEN 'user_disabled' END
    FROM unnest(everyone) AS e (id) LEFT JOIN users u ON u.id = e.id AND (u.workspace_id = workspace) IS TRUE
$$;

-- Opens a direct conversation for one of its members.
CREATE FUNCTION direct_show(caller text, channel text, is_new boolean, with_object boolean) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    c channels;
    closed bigint;
    was_open boolean;
BEGIN
    SELECT m.closed_ord INTO closed FROM channel_members m WHERE m.channel_id = channel AND m.user_id = caller FOR NO KEY UPDATE;
    c := (SELECT channel_now(x) FROM channels x WHERE x.id = channel);
    was_open := closed IS NULL OR c.ord > closed;
    IF closed IS NOT NULL THEN
        UPDATE channel_members m SET closed_ord = NULL, changed = pg_current_xact_id() WHERE m.channel_id = channel AND m.user_id = caller;
        PERFORM change_note(channel, caller);
        PERFORM push_touch(caller);
    END IF;
    RETURN '{' || CASE WHEN was_open AND NOT is_new THEN '"no_op":true,"already_open":true,' ELSE '' END || '"channel":'
        || CASE WHEN with_object THEN direct_object(c, caller, NULL) ELSE '{"id":"' || channel || '"}' END || '}';
END $$;

-- Opens the direct conversation of `others` and the caller. `may_make` false: only an existing one. An existing one opens even if one of them
-- has been deactivated.
CREATE FUNCTION direct_open(outbox_id text, workspace text, caller text, new_id text, others text[], may_make boolean, with_object boolean)
RETURNS TABLE (error text, reply text, told boolean, channel_id text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    everyone text[] := ARRAY(SELECT DISTINCT e.id COLLATE "C" FROM unnest(others || caller) AS e (id) ORDER BY 1);
    refusal text := direct_refusal(workspace, everyone);
    exists_already boolean := EXISTS (SELECT 1 FROM channels c WHERE c.workspace_id = workspace AND c.people = array_to_string(everyone, ','));
    opened record;
BEGIN
    IF exists_already AND refusal = 'user_disabled' THEN
        refusal := NULL;
    ELSIF NOT exists_already AND refusal IS NULL AND NOT may_make THEN
        refusal := 'channel_not_found';
    END IF;
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::text, false, NULL::text;
        RETURN;
    END IF;
    SELECT * INTO opened FROM direct_make(outbox_id, workspace, caller, new_id, everyone);
    RETURN QUERY SELECT NULL::text, direct_show(caller, opened.channel, opened.made, with_object), opened.made, opened.channel;
END $$;

-- Why `channel` is not a direct conversation of the caller's; NULL: it is one.
CREATE FUNCTION direct_channel_refusal(workspace text, caller text, channel text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(channel_refusal(workspace, caller, channel),
                    (SELECT 'method_not_supported_for_channel_type' FROM channels c WHERE c.id = channel AND c.people IS NULL))
$$;

CREATE FUNCTION direct_open_channel(workspace text, caller text, channel text, with_object boolean)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text := direct_channel_refusal(workspace, caller, channel);
BEGIN
    RETURN QUERY SELECT refusal, CASE WHEN refusal IS NULL THEN direct_show(caller, channel, false, with_object) END;
END $$;

-- Hides a direct conversation from the caller until a message arrives after the last one they saw, or until they open it. `seen`: the ts of
-- that message; NULL: the latest when the call began. If a later one is there already, nothing changes.
CREATE FUNCTION direct_close(workspace text, caller text, channel text, seen bigint) RETURNS TABLE (error text, reply text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text := direct_channel_refusal(workspace, caller, channel);
    head record;
    upto bigint;
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, NULL::text;
        RETURN;
    END IF;
    -- Before waiting for the lock: a message that is posted meanwhile was not seen.
    SELECT c.ord, c.last_ts INTO head FROM channel_heads c WHERE c.id = channel;
    upto := head.ord;
    IF seen < head.last_ts THEN
        upto := coalesce((SELECT m.ord FROM messages m WHERE m.channel_id = channel AND m.ts <= seen ORDER BY m.ts DESC LIMIT 1), 0);
    END IF;
    PERFORM 1 FROM channel_members m WHERE m.channel_id = channel AND m.user_id = caller FOR NO KEY UPDATE;
    PERFORM change_note(channel, caller);
    UPDATE channel_members m SET closed_ord = upto, changed = pg_current_xact_id()
    FROM channel_heads c WHERE c.id = channel AND m.channel_id = channel AND m.user_id = caller AND c.ord <= upto
      AND (m.closed_ord IS NULL OR upto > m.closed_ord);
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::text, '{"no_op":true' || CASE WHEN c.ord <= upto THEN ',"already_closed":true' ELSE '' END || '}'
                     FROM channel_heads c WHERE c.id = channel;
        RETURN;
    END IF;
    PERFORM push_recheck(caller, channel);
    RETURN QUERY SELECT NULL::text, '{}';
END $$;

-- Locks a channel for a change by a member.
CREATE FUNCTION channel_change_lock(workspace text, caller text, channel text, OUT error text, OUT c channels) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    c := found.c;
    error := CASE WHEN found.error IS NOT NULL THEN found.error WHEN NOT found.is_member THEN 'not_in_channel'
                  WHEN (found.c).is_archived THEN 'is_archived' END;
END $$;

-- `what`: topic or purpose. Setting the current value again is not an event.
CREATE FUNCTION channels_set(outbox_id text, workspace text, caller text, channel text, what text, value text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    event record;
    changes boolean;
BEGIN
    SELECT * INTO found FROM channel_change_lock(workspace, caller, channel);
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    changes := value <> CASE what WHEN 'topic' THEN (found.c).topic ELSE (found.c).purpose END;
    IF changes THEN
        SELECT * INTO event FROM channel_notice(channel, caller, 'channel_' || what, '<@' || caller || '> set the channel '
            || CASE what WHEN 'topic' THEN 'topic' ELSE 'description' END || ': ' || value, json_build_object(what, value)::text);
        IF what = 'topic' THEN
            UPDATE channels c SET topic = value, topic_by = caller, topic_at = event.ts / 1000000 WHERE c.id = channel;
        ELSE
            UPDATE channels c SET purpose = value, purpose_by = caller, purpose_at = event.ts / 1000000 WHERE c.id = channel;
        END IF;
        PERFORM outbox_put(outbox_id, channel, event.seq, event.ts, 'post', caller);
    END IF;
    RETURN QUERY SELECT NULL::text, '{"channel":' || channel_object(c, true) || '}', changes FROM channels c WHERE c.id = channel;
END $$;

-- For the channel's creator and admins. Fails if another channel has the name, or one that looks the same (`new_folded`); the channel's
-- current name changes nothing.
CREATE FUNCTION channels_rename(outbox_id text, workspace text, caller text, is_admin boolean, channel text, new_name text, new_folded text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    event record;
    old_name text;
BEGIN
    PERFORM pg_advisory_xact_lock(7236402, hashtext(workspace)); -- two channels may take each other's name
    SELECT * INTO found FROM channel_change_lock(workspace, caller, channel);
    IF found.error IS NULL AND NOT is_admin AND (found.c).creator <> caller THEN
        found.error := 'not_authorized';
    END IF;
    old_name := (found.c).name;
    IF found.error IS NULL AND new_name <> old_name THEN
        BEGIN
            UPDATE channels c SET name = new_name, folded = new_folded, folded_from = new_name, previous_names = (old_name || coalesce(c.previous_names, '{}'))[1:20] WHERE c.id = channel;
        EXCEPTION WHEN unique_violation THEN
            found.error := 'name_taken';
        END;
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    IF new_name <> old_name THEN
        SELECT * INTO event FROM channel_notice(channel, caller, 'channel_name', '<@' || caller || '> has renamed the channel from "'
            || old_name || '" to "' || new_name || '"', json_build_object('name', new_name, 'old_name', old_name)::text);
        PERFORM outbox_put(outbox_id, channel, event.seq, event.ts, 'rename', caller);
    END IF;
    RETURN QUERY SELECT NULL::text, '{"channel":' || channel_object(c, true) || '}', new_name <> old_name FROM channels c WHERE c.id = channel;
END $$;

-- The first `count` conversations of `member` after id `after` that the caller can see too. `error` in the first row: why there is no list.
CREATE FUNCTION users_conversations(workspace text, caller text, member text, types integer, exclude_archived boolean,
                                    exclude_muted boolean, after text, count integer)
RETURNS TABLE (error text, id text, object text) LANGUAGE sql STABLE AS $$
    WITH refused AS MATERIALIZED ( -- once, not for each row
        SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM users u WHERE u.id = member AND (u.workspace_id = workspace) IS TRUE)
                    THEN 'user_not_found' END AS error
    )
    SELECT refused.error, listed.id, listed.object
    FROM refused
    LEFT JOIN LATERAL (
        SELECT f.id, conversation_object(c, member, NULL, f.closed_ord) AS object
        FROM (SELECT t.id, seen.closed_ord FROM channel_members m
              CROSS JOIN LATERAL (SELECT x.id, x.type, x.is_archived FROM channels x WHERE x.id = m.channel_id OFFSET 0) t
              LEFT JOIN LATERAL (SELECT s.active, s.closed_ord FROM channel_members s
                                 WHERE s.channel_id = m.channel_id AND s.user_id = caller OFFSET 0) seen ON true
              WHERE refused.error IS NULL AND m.user_id = member AND m.channel_id > first_id_of(types, after) COLLATE "C" AND m.active
                AND types >> t.type & 1 <> 0 AND (t.type = 0 OR seen.active) AND NOT (exclude_archived AND t.is_archived)
                AND NOT (exclude_muted AND member = caller AND m.muted)
              ORDER BY m.channel_id LIMIT count) f
        JOIN channels c ON c.id = f.id) listed ON true
    ORDER BY listed.id
$$;

-- The lists of rtm.start, each with at most `most` entries, and one more if the list is incomplete. `list`: 0 users, 1 + type channels, 5
-- bots. `channel`: the id, where the caller is a member. The caller's own channels come first, those with the newest posts before others.
CREATE FUNCTION rtm_lists(workspace text, caller text, most bigint, reads_email boolean)
RETURNS TABLE (list integer, place bigint, object text, channel text) LANGUAGE sql STABLE AS $$
    WITH own AS MATERIALIZED (
        SELECT p.* FROM (
            SELECT c.id, c.type, m.closed_ord,
                   row_number() OVER (PARTITION BY c.type ORDER BY c.is_archived, coalesce(h.updated_ts, c.updated_ts) DESC, c.id) AS place
            FROM channel_members m JOIN channels c ON c.id = m.channel_id
            LEFT JOIN LATERAL hot_state(c.id, c.is_hot, NULL) h ON true WHERE m.user_id = caller AND m.active) p
        WHERE p.place <= most + 1
    )
    SELECT 0, row_number() OVER (ORDER BY u.id), user_shown(u, caller, reads_email), NULL::text
    FROM (SELECT x.* FROM users x WHERE x.workspace_id = workspace ORDER BY x.id LIMIT most + 1) u
    UNION ALL
    SELECT 1 + p.type, p.place, conversation_object(c, caller, true, p.closed_ord), c.id
    FROM own p JOIN channels c ON c.id = p.id
    UNION ALL
    SELECT 1, most + 1 + row_number() OVER (ORDER BY c.id), channel_object(c, false), NULL
    FROM (SELECT x.* FROM channels x
          WHERE NOT EXISTS (SELECT 1 FROM own WHERE own.type = 0 AND own.place > most) -- the list is full then
            AND x.workspace_id = workspace AND x.type = 0 AND NOT x.is_archived AND NOT EXISTS (
              SELECT 1 FROM channel_members m WHERE m.channel_id = x.id AND m.user_id = caller AND m.active)
          ORDER BY x.id LIMIT most + 1) c
    UNION ALL
    SELECT 5, row_number() OVER (ORDER BY (b.x).id), bot_object(b.x)::text, NULL
    FROM (SELECT x FROM users x WHERE x.workspace_id = workspace AND x.bot_id IS NOT NULL ORDER BY x.id LIMIT most + 1) b
$$;

-- Why `caller` may not show `recipient` a message in a channel, or in the thread of message `thread` (0: none). If they may, the channel's
-- type and the thread's root.
CREATE FUNCTION ephemeral_check(workspace text, caller text, channel text, recipient text, thread bigint)
RETURNS TABLE (error text, type smallint, root bigint) LANGUAGE sql STABLE AS $$
    SELECT coalesce(channel_refusal(workspace, caller, channel),
                    CASE WHEN c.is_archived THEN 'is_archived' WHEN m.active IS NOT TRUE THEN 'user_not_in_channel'
                         WHEN thread <> 0 AND NOT thread_exists(channel, one.root) THEN 'thread_not_found' END), c.type, one.root
    FROM (SELECT coalesce(thread_root(channel, thread), thread) AS root) one
    LEFT JOIN channels c ON c.id = channel
    LEFT JOIN channel_members m ON m.channel_id = channel AND m.user_id = recipient
$$;
