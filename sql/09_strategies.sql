-- SPDX-License-Identifier: Apache-2.0
-- Strategies for unread counts in Redis; singles.

-- The strategy for a channel with this many members. `auto_limits`: auto uses zset up to the first number of members, counter up to the
-- second, bitmap from the third on (0: never). Otherwise, and by default, sequence: exact, and the same at any size.
CREATE FUNCTION strategy_pick(chosen text, members integer, auto_limits bigint[]) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE WHEN chosen = 'zset' OR (chosen = 'auto' AND members <= auto_limits[1]) THEN 1
                 WHEN chosen = 'counter' OR (chosen = 'auto' AND members <= auto_limits[2]) THEN 2
                 WHEN chosen = 'bitmap' OR (chosen = 'auto' AND auto_limits[3] > 0 AND members >= auto_limits[3]) THEN 3
                 ELSE 0 END)::smallint
$$;

-- Switches a channel to `wanted`. The caller holds the channel's lock. False: it was in use already.
CREATE FUNCTION strategy_use(outbox_id text, channel text, caller text, wanted smallint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before smallint := (SELECT c.strategy_in_use FROM channels c WHERE c.id = channel);
BEGIN
    IF before = wanted THEN
        RETURN false;
    END IF;
    PERFORM channel_cool(channel);
    UPDATE channels c SET strategy_in_use = wanted, generation = c.generation + 1, changed = pg_current_xact_id() WHERE c.id = channel;
    PERFORM outbox_put(outbox_id, channel, 0, before, 'strategy', caller); -- the old strategy, in place of a ts
    RETURN true;
END $$;

CREATE FUNCTION channels_set_strategy(outbox_id text, workspace text, caller text, is_admin boolean, channel text, chosen text,
                                      auto_limits bigint[])
RETURNS TABLE (error text, reply text, told boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    moved boolean;
BEGIN
    SELECT * INTO found FROM channel_lock(workspace, caller, channel);
    IF found.error IS NULL AND NOT is_admin AND (found.c).creator <> caller THEN
        found.error := 'restricted_action';
    END IF;
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, false;
        RETURN;
    END IF;
    UPDATE channels c SET strategy = chosen WHERE c.id = channel AND c.strategy <> chosen;
    moved := strategy_use(outbox_id, channel, caller, strategy_pick(chosen, (found.c).member_count, auto_limits));
    RETURN QUERY SELECT NULL::text, '{"strategy":"' || c.strategy || '","strategy_in_use":"' || strategy_name(c.strategy_in_use) || '"}',
                        moved
    FROM channels c WHERE c.id = channel;
END $$;

-- As strategy_use(), for many channels: one that cannot be changed is put aside.
CREATE FUNCTION strategy_try(outbox_id text, channel text, caller text, wanted smallint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN strategy_use(outbox_id, channel, caller, wanted);
EXCEPTION WHEN lock_not_available OR transaction_rollback OR insufficient_resources THEN
    RAISE;
WHEN OTHERS THEN
    PERFORM row_aside('strategy of channel ' || channel, SQLERRM);
    RETURN false;
END $$;

-- Adapts channels with the strategy auto to their current numbers of members: the `count` channels after id `after`, in the outbox row
-- `outbox_id` (none if nothing changed). Returns how many changed, and the last channel examined; NULL: there are no more.
CREATE FUNCTION strategies_auto(outbox_id text, auto_limits bigint[], after text, count bigint, OUT moved bigint, OUT last text)
LANGUAGE sql VOLATILE AS $$
    WITH page AS MATERIALIZED (
        SELECT l.id FROM channels l WHERE l.id > after COLLATE "C" ORDER BY l.id LIMIT strategies_auto.count
    ), wanted AS MATERIALIZED (
        SELECT l.id, l.creator, l.is_hot, strategy_pick('auto', l.member_count, auto_limits) AS wanted FROM page p JOIN channels l ON l.id = p.id
        WHERE l.strategy = 'auto' AND NOT l.is_archived
          AND l.strategy_in_use <> strategy_pick('auto', l.member_count, auto_limits)
        ORDER BY l.id FOR NO KEY UPDATE OF l SKIP LOCKED
    )
    SELECT (SELECT count(*) FILTER (WHERE CASE WHEN c.is_hot AND hot_lock(c.id, false) IS NULL THEN false -- next time
                                               ELSE strategy_try(outbox_id, c.id, c.creator, c.wanted) END) FROM wanted c),
           (SELECT max(p.id) FROM page p HAVING count(*) = strategies_auto.count)
$$;

-- Marks single messages as read, all of `tss` or none. Messages before the cursor, the caller's own and those that are not counted are read
-- already.
CREATE FUNCTION mark_messages(outbox_id text, workspace text, caller text, channel text, tss bigint[], singles_max bigint)
RETURNS TABLE (error text, changed boolean, state unread_rows) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    refusal text;
    m channel_members;
    fresh bigint[];
BEGIN
    PERFORM members_lock(ARRAY[channel], ARRAY[caller]);
    refusal := channel_refusal(workspace, caller, channel);
    SELECT * INTO m FROM channel_members i WHERE i.channel_id = channel AND i.user_id = caller;
    IF refusal IS NULL AND EXISTS (SELECT 1 FROM channels c WHERE c.id = channel AND c.strategy_in_use = 3) THEN
        refusal := 'strategy_unsupported';
    END IF;
    IF refusal IS NULL AND EXISTS (SELECT 1 FROM unnest(tss) AS a (ts) WHERE NOT EXISTS (
            SELECT 1 FROM messages r WHERE r.channel_id = channel AND r.ts = a.ts AND NOT r.deleted)) THEN
        refusal := 'message_not_found';
    END IF;
    fresh := ARRAY(SELECT r.ts FROM messages r WHERE r.channel_id = channel AND r.ts = ANY (tss) AND r.counted AND r.ts > m.ts
                   AND r.user_id <> caller AND NOT EXISTS (SELECT 1 FROM read_messages s
                                                           WHERE s.channel_id = channel AND s.user_id = caller AND s.ts = r.ts));
    IF refusal IS NULL AND m.singles + cardinality(fresh) > singles_max THEN
        refusal := 'too_many_read_messages';
    END IF;
    IF refusal IS NOT NULL THEN
        RETURN QUERY SELECT refusal, false, NULL::unread_rows;
        RETURN;
    END IF;
    IF cardinality(fresh) > 0 THEN
        INSERT INTO read_messages SELECT channel, caller, f.ts FROM unnest(fresh) AS f (ts);
        UPDATE channel_members i SET singles = i.singles + cardinality(fresh), single_version = i.single_version + 1,
            changed = pg_current_xact_id() WHERE i.channel_id = channel AND i.user_id = caller;
        PERFORM push_marked(ARRAY[caller], ARRAY[channel]);
        PERFORM outbox_put(outbox_id, channel, m.seq, m.ts, 'mark', caller);
    END IF;
    RETURN QUERY SELECT NULL::text, cardinality(fresh) > 0, r FROM unread_rows r WHERE r.channel_id = channel AND r.user_id = caller;
END $$;
