-- SPDX-License-Identifier: Apache-2.0
-- Channels and their members. Each method is one function, and so one transaction. It returns `error` (NULL: success), `reply` (the members
-- of the reply, as a JSON object), and `told`: whether it wrote the outbox row whose id it was given.

-- Adds those of `users` who are not members yet, with their cursors at the head. The caller holds the channel's row lock, and posts wait
-- for it, so all are added at once. False: there was nobody to add.
CREATE FUNCTION members_add(outbox_id text, channel text, users text[], inviter text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    added text[] := ARRAY(SELECT u.id FROM unnest(users) WITH ORDINALITY AS u (id, n)
                          -- one lookup for each: a join, or NOT EXISTS, would read all members of the channel
                          WHERE (SELECT m.active FROM channel_members m WHERE m.channel_id = channel AND m.user_id = u.id) IS NOT TRUE
                          GROUP BY u.id ORDER BY min(u.n));
    size integer := cardinality(added);
    free integer[]; -- numbers of former members, for reuse
    others text[];  -- those former members
    head channels;
BEGIN
    IF size = 0 THEN
        RETURN false;
    END IF;
    SELECT coalesce(array_agg(f.number ORDER BY f.number), '{}'), array_agg(f.user_id) INTO free, others
    FROM (SELECT m.number, m.user_id FROM channel_members m WHERE m.channel_id = channel AND NOT m.active AND m.number >= 0
          AND (SELECT c.numbers > c.member_count FROM channels c WHERE c.id = channel) -- otherwise nobody has left, and the members need not be read
          ORDER BY m.number LIMIT size) f;
    PERFORM channel_cool(channel, added || others);
    PERFORM members_lock(array_fill(channel, ARRAY[cardinality(added || others)]), added || others);
    IF others IS NOT NULL THEN
        UPDATE channel_members m SET number = -1 WHERE m.channel_id = channel AND m.user_id = ANY (others);
    END IF;
    UPDATE channels c SET seq = c.seq + size, last_ts = greatest(clock_us(), c.last_ts + 1) + size - 1, changed = pg_current_xact_id(),
        member_count = c.member_count + size, numbers = c.numbers + size - cardinality(free)
    WHERE c.id = channel RETURNING * INTO head;
    IF head.last_ts > clock_us() + clock_ahead_us() THEN
        PERFORM clock_passed(head.last_ts);
    END IF;
    INSERT INTO messages (channel_id, ts, seq, ord, user_id, counted, subtype, body, extra)
    SELECT channel, head.last_ts - size + n, head.seq - size + n, head.ord, added[n], false, 'channel_join',
           '<@' || added[n] || '> has joined the channel', CASE WHEN inviter <> added[n] THEN json_build_object('inviter', inviter)::text END
    FROM generate_series(1, size) AS n;
    DELETE FROM read_messages s WHERE s.channel_id = channel AND s.user_id = ANY (added);
    INSERT INTO channel_members AS m (channel_id, user_id, member_seq, number, ts, seq, ord)
    SELECT channel, added[n], head.seq - size + n, coalesce(free[n], head.numbers - size + n - 1), head.last_ts - size + n,
           head.seq - size + n, head.ord
    FROM generate_series(1, size) AS n ORDER BY added[n] COLLATE "C" -- as marks lock them
    ON CONFLICT (channel_id, user_id) DO UPDATE SET active = true, member_seq = excluded.member_seq, joined_at = now(),
        number = excluded.number, singles = 0, single_version = m.single_version + 1,
        epoch = m.epoch + 1, ts = excluded.ts, seq = excluded.seq, ord = excluded.ord, own = m.posts, muted = false,
        notify = 'all', changed = pg_current_xact_id();
    PERFORM outbox_add(outbox_id, array_agg(channel), array_agg(head.seq - size + n), array_agg(head.last_ts - size + n), 'join', added)
    FROM generate_series(1, size) AS n;
    RETURN true;
END $$;

-- Removes a member. The caller holds the channel's row lock. False: `member` was not one.
CREATE FUNCTION member_remove(outbox_id text, channel text, member text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    told record;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM channel_members m WHERE m.channel_id = channel AND m.user_id = member AND m.active) THEN
        RETURN false;
    END IF;
    SELECT * INTO told FROM channel_notice(channel, member, 'channel_leave', '<@' || member || '> has left the channel', NULL);
    UPDATE channels c SET member_count = c.member_count - 1 WHERE c.id = channel;
    UPDATE channel_members m SET active = false, member_seq = told.seq, changed = pg_current_xact_id()
    WHERE m.channel_id = channel AND m.user_id = member;
    PERFORM threads_leave(channel, member);
    PERFORM outbox_put(outbox_id, channel, told.seq, told.ts, 'leave', member);
    RETURN true;
END $$;

-- Locks a channel that the caller may see. Direct conversations are refused, since their members never change. Errors: channel_not_found,
-- method_not_supported_for_channel_type.
CREATE FUNCTION channel_lock(workspace text, caller text, channel text, OUT error text, OUT c channels, OUT is_member boolean)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    SELECT * INTO c FROM channels ch WHERE ch.id = channel AND (ch.workspace_id = workspace) IS TRUE FOR NO KEY UPDATE;
    is_member := coalesce((SELECT m.active FROM channel_members m WHERE m.channel_id = channel AND m.user_id = caller), false);
    IF c.id IS NULL OR (c.is_private AND NOT is_member) THEN
        error := 'channel_not_found';
    ELSIF c.people IS NOT NULL THEN
        error := 'method_not_supported_for_channel_type';
    END IF;
END $$;

-- `channel_folded`: the name by unicode_fold().
CREATE FUNCTION channels_create(outbox_id text, workspace text, caller text, new_id text, channel_name text, channel_folded text, private boolean,
                                chosen text, auto_limits bigint[])
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO channels (id, workspace_id, name, folded, folded_from, type, is_private, creator, made, strategy, strategy_in_use)
    VALUES (new_id, workspace, channel_name, channel_folded, channel_name, private::integer, private, caller, pg_current_xact_id(), chosen,
            strategy_pick(chosen, 1, auto_limits))
    ON CONFLICT DO NOTHING; -- the name, or its folded form
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'name_taken', NULL::text, false;
        RETURN;
    END IF;
    PERFORM outbox_put(outbox_id, new_id, 0, 0, 'created', caller);
    PERFORM members_add(outbox_id, new_id, ARRAY[caller], caller);
    RETURN QUERY SELECT NULL::text, '{"channel":' || channel_object(c, true) || '}', true FROM channels c WHERE c.id = new_id;
END $$;

CREATE FUNCTION channels_join(outbox_id text, workspace text, caller text, channel text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    added boolean;
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    IF found.error IS NULL AND (found.c).is_archived THEN
        found.error := 'is_archived';
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    added := members_add(outbox_id, channel, ARRAY[caller], caller);
    RETURN QUERY SELECT NULL::text, '{"channel":' || channel_object(c, true) || CASE WHEN added THEN '}'
        ELSE ',"warning":"already_in_channel","response_metadata":{"warnings":["already_in_channel"]}}' END, added
    FROM channels c WHERE c.id = channel;
END $$;

-- The channel with this name, else the one with a name that looks the same, if it is public or the caller is a member.
CREATE FUNCTION channel_named(workspace text, caller text, channel_name text, channel_folded text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT c.id
    FROM (SELECT n.* FROM channels n WHERE n.workspace_id = workspace AND n.name = channel_name
          UNION ALL SELECT n.* FROM channels n WHERE n.workspace_id = workspace AND n.folded = channel_folded AND n.folded_from = n.name) c
    LEFT JOIN channel_members m ON m.channel_id = c.id AND m.user_id = caller
    WHERE NOT c.is_private OR m.active ORDER BY c.name <> channel_name LIMIT 1
$$;

-- Creates the channel if nobody has the name.
CREATE FUNCTION channels_join_by_name(outbox_id text, workspace text, caller text, channel_name text, channel_folded text, new_id text,
                                      chosen text, auto_limits bigint[])
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    known text := channel_named(workspace, caller, channel_name, channel_folded);
    made record;
BEGIN
    IF known IS NULL THEN
        SELECT * INTO made FROM channels_create(outbox_id, workspace, caller, new_id, channel_name, channel_folded, false, chosen, auto_limits);
        IF made.error IS NOT NULL THEN
            known := channel_named(workspace, caller, channel_name, channel_folded); -- somebody has just created it
        END IF;
    END IF;
    IF known IS NULL THEN
        RETURN QUERY SELECT made.error, made.reply, made.told;
    ELSE
        RETURN QUERY SELECT * FROM channels_join(outbox_id, workspace, caller, known);
    END IF;
END $$;

CREATE FUNCTION channels_leave(outbox_id text, workspace text, caller text, channel text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    removed boolean;
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    IF found.error IS NULL THEN
        found.error := CASE WHEN (found.c).is_archived THEN 'is_archived' WHEN (found.c).name = 'general' THEN 'cant_leave_general' END;
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    removed := member_remove(outbox_id, channel, caller);
    RETURN QUERY SELECT NULL::text, CASE WHEN removed THEN '{}' ELSE '{"not_in_channel":true}' END, removed;
END $$;

-- All or none: if any of `invited` cannot be added, nobody is, and `errors` has the reason for each. With `force` the others are added
-- nevertheless, if there are any.
CREATE FUNCTION channels_invite(outbox_id text, workspace text, caller text, channel text, invited text[], force boolean)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    refused json;
    first_error text;
    good text[];
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    IF found.error IS NULL AND NOT found.is_member THEN
        found.error := 'not_in_channel';
    ELSIF found.error IS NULL AND (found.c).is_archived THEN
        found.error := 'is_archived';
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    SELECT json_agg(json_build_object('user', e.id, 'ok', false, 'error', e.error) ORDER BY e.n) FILTER (WHERE e.error IS NOT NULL), min(e.error),
           array_agg(e.id ORDER BY e.n) FILTER (WHERE e.error IS NULL)
    INTO refused, first_error, good
    FROM (SELECT i.id, i.n, CASE WHEN i.id = caller THEN 'cant_invite_self' WHEN u.id IS NULL THEN 'user_not_found'
                            WHEN m.active THEN 'already_in_channel' END AS error
          FROM unnest(invited) WITH ORDINALITY AS i (id, n)
          LEFT JOIN users u ON u.id = i.id AND (u.workspace_id = workspace) IS TRUE AND u.active
          LEFT JOIN channel_members m ON m.channel_id = channel AND m.user_id = i.id) e;
    IF refused IS NOT NULL AND (NOT force OR good IS NULL) THEN
        RETURN QUERY SELECT first_error, json_build_object('errors', refused)::text, false;
        RETURN;
    END IF;
    PERFORM members_add(outbox_id, channel, good, caller);
    RETURN QUERY SELECT NULL::text, '{"channel":' || channel_object(c, true) || coalesce(',"errors":' || refused, '') || '}', true
    FROM channels c WHERE c.id = channel;
END $$;

-- For admins, who need not be members. Returns for each user, in order, that they are a member now, or why not; an error with one does not
-- affect the others.
CREATE FUNCTION channels_add_members(outbox_id text, workspace text, caller text, channel text, users text[])
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found channels;
    good text[];
    added bigint;
    results json;
BEGIN
    SELECT * INTO found FROM channels c WHERE c.id = channel AND (c.workspace_id = workspace) IS TRUE FOR NO KEY UPDATE;
    error := CASE WHEN found.id IS NULL THEN 'channel_not_found' WHEN found.people IS NOT NULL THEN 'method_not_supported_for_channel_type'
                  WHEN found.is_archived THEN 'is_archived' END;
    IF error IS NOT NULL THEN
        RETURN QUERY SELECT error, NULL::text, false;
        RETURN;
    END IF;
    SELECT json_agg(CASE WHEN e.error IS NULL THEN json_build_object('user', e.id, 'ok', true)
                         ELSE json_build_object('user', e.id, 'error', e.error) END ORDER BY e.n),
           array_agg(e.id ORDER BY e.n) FILTER (WHERE e.error IS NULL),
           count(DISTINCT e.id) FILTER (WHERE e.error IS NULL AND NOT e.is_in)
    INTO results, good, added
    FROM (SELECT a.id, a.n, (SELECT m.active FROM channel_members m WHERE m.channel_id = channel AND m.user_id = a.id) IS TRUE AS is_in,
                 CASE WHEN u.id IS NULL THEN 'user_not_found' WHEN NOT u.active THEN 'user_disabled' END AS error
          FROM unnest(users) WITH ORDINALITY AS a (id, n)
          LEFT JOIN users u ON u.id = a.id AND (u.workspace_id = workspace) IS TRUE) e;
    IF added > 0 THEN
        PERFORM members_add(outbox_id, channel, good, NULLIF(caller, '')); -- '': an operator, by the command line
    END IF;
    RETURN QUERY SELECT NULL::text, '{"added":' || added || ',"results":' || results || '}', added > 0;
END $$;

CREATE FUNCTION channels_kick(outbox_id text, workspace text, caller text, is_admin boolean, channel text, kicked text)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    IF found.error IS NULL THEN
        found.error := CASE
            WHEN NOT found.is_member THEN 'not_in_channel'
            WHEN (found.c).is_archived THEN 'is_archived'
            WHEN kicked = caller THEN 'cant_kick_self'
            WHEN (found.c).name = 'general' THEN 'cant_kick_from_general'
            WHEN NOT EXISTS (SELECT 1 FROM users u WHERE u.id = kicked AND (u.workspace_id = workspace) IS TRUE) THEN 'user_not_found'
            WHEN NOT is_admin AND (found.c).creator <> caller THEN 'restricted_action'
            WHEN NOT member_remove(outbox_id, channel, kicked) THEN 'not_in_channel' END;
    END IF;
    RETURN QUERY SELECT found.error, CASE WHEN found.error IS NULL THEN '{"errors":{}}' END, found.error IS NULL;
END $$;

-- Archives or unarchives a channel.
CREATE FUNCTION channels_archive(outbox_id text, workspace text, caller text, is_admin boolean, channel text, wanted boolean)
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    event record;
    kind text := CASE WHEN wanted THEN 'archive' ELSE 'unarchive' END;
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    IF found.error IS NULL THEN
        found.error := CASE WHEN NOT found.is_member THEN 'not_in_channel'
                            WHEN (found.c).is_archived AND wanted THEN 'already_archived'
                            WHEN NOT (found.c).is_archived AND NOT wanted THEN 'not_archived'
                            WHEN wanted AND (found.c).name = 'general' THEN 'cant_archive_general'
                            WHEN NOT is_admin AND (found.c).creator <> caller THEN 'restricted_action' END;
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    SELECT * INTO event FROM channel_notice(channel, caller, 'channel_' || kind, '<@' || caller || '> '
        || CASE WHEN wanted THEN 'archived' ELSE 'un-archived' END || ' the channel', NULL);
    UPDATE channels c SET is_archived = wanted WHERE c.id = channel;
    PERFORM outbox_put(outbox_id, channel, event.seq, event.ts, kind, caller);
    RETURN QUERY SELECT NULL::text, '{}', true;
END $$;

-- Where to start a list of channels of these types (bits 1 << type). Ids of direct conversations begin with D or G, so a list of these
-- alone can skip all channels before them.
CREATE FUNCTION first_id_of(types integer, after text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN types & 3 = 0 AND after < 'D' COLLATE "C" THEN 'D' ELSE after END $$;

-- The first `count` channels of these types (bits 1 << type) after id `after`: all public ones, and the others that the caller is a member
-- of. OFFSET 0: the caller's channels are looked up in the order of their ids until there are enough, however many there are.
CREATE FUNCTION channels_list(workspace text, caller text, types integer, exclude_archived boolean, after text, count integer)
RETURNS TABLE (id text, object text) LANGUAGE sql STABLE AS $$
    (SELECT c.id, channel_object(c, m.active IS TRUE) FROM channels c
     LEFT JOIN channel_members m ON m.channel_id = c.id AND m.user_id = caller
     WHERE types & 1 <> 0 AND c.workspace_id = workspace AND c.id > after COLLATE "C" AND c.type = 0
       AND NOT (exclude_archived AND c.is_archived)
     ORDER BY c.id LIMIT count)
    UNION ALL
    (SELECT f.id, conversation_object(c, caller, true, f.closed_ord)
     FROM (SELECT t.id, m.closed_ord FROM channel_members m
           CROSS JOIN LATERAL (SELECT x.id, x.type, x.is_archived FROM channels x WHERE x.id = m.channel_id OFFSET 0) t
           WHERE types & ~1 <> 0 AND m.user_id = caller AND m.channel_id > first_id_of(types, after) COLLATE "C" AND m.active AND t.type > 0
             AND types >> t.type & 1 <> 0 AND NOT (exclude_archived AND t.is_archived)
           ORDER BY m.channel_id LIMIT count) f
     JOIN channels c ON c.id = f.id)
    ORDER BY 1 LIMIT count
$$;

-- `error` in the first row: why the caller may not see the list.
CREATE FUNCTION channels_members(workspace text, caller text, channel text, after text, count integer)
RETURNS TABLE (error text, id text) LANGUAGE sql STABLE AS $$
    WITH refused AS MATERIALIZED ( -- once, not for each member
        SELECT NULLIF(channel_refusal(workspace, caller, channel), 'not_in_channel') AS error
    )
    SELECT refused.error, listed.id
    FROM refused
    LEFT JOIN LATERAL (SELECT m.user_id AS id FROM channel_members m
                       WHERE refused.error IS NULL AND m.channel_id = channel AND m.active AND m.user_id > after COLLATE "C"
                       ORDER BY m.user_id LIMIT count) listed ON true
$$;
