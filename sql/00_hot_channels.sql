-- SPDX-License-Identifier: Apache-2.0
-- Hot channels: those that are posted to often while somebody holds a snapshot of Postgres. Their heads, and the numbers of their authors' posts,
-- are in tables of their own, in rows that are found by when they were last written (docs/decisions/2026-11-23-hot-channels.md).
-- A post to a hot channel locks its row of hot_heads, and all that stand in its way hold that or wait for it. Any other event
-- of the channel first makes it a channel like others, by channel_cool(); so does quiet.
-- Locks: rows of hot_heads before those of channels. Who holds one channel alone may take them the other way round.

-- While somebody holds a snapshot, a channel is hot from a post on that comes no later than this after the event before, until nobody posts to
-- it for ten seconds. When the snapshot is gone, none stays hot.
CREATE FUNCTION hot_gap_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 2000000 $$;

-- The turn of a time in microseconds: rows get another place in their indexes only when it passes. An author's posts are fewer than a channel's.
CREATE FUNCTION hot_turn(us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT us - us % 50000 $$;
CREATE FUNCTION hot_author_turn(us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT us - us % 1000000 $$;

-- The head of a hot channel, and how many posts a member ever made there (NULL: as the member's row says). No row: it is not hot.
CREATE FUNCTION hot_state(channel text, is_hot boolean, member text)
RETURNS TABLE (seq bigint, ord bigint, last_ts bigint, updated_ts bigint, latest_ts bigint, latest_user text, latest_preview text,
               mention_ts bigint, changed xid8, posts bigint) LANGUAGE sql STABLE AS $$
    SELECT h.seq, h.ord, h.last_ts, h.updated_ts, h.latest_ts, h.latest_user, h.latest_preview, h.mention_ts, h.changed,
           (SELECT a.posts FROM hot_authors a WHERE a.channel_id = h.channel_id AND a.since = h.since AND a.user_id = member
            ORDER BY a.turn DESC LIMIT 1)
    FROM hot_heads h WHERE is_hot AND h.channel_id = channel ORDER BY h.turn DESC LIMIT 1
$$;

-- The heads of all channels.
CREATE VIEW channel_heads AS
    SELECT c.id, c.workspace_id, c.generation, coalesce(h.seq, c.seq) AS seq, coalesce(h.ord, c.ord) AS ord,
           coalesce(h.last_ts, c.last_ts) AS last_ts, coalesce(h.updated_ts, c.updated_ts) AS updated_ts,
           coalesce(h.changed, c.changed) AS changed
    FROM channels c LEFT JOIN LATERAL hot_state(c.id, c.is_hot, NULL) h ON true;

-- A channel's row with its head as it is, in the statement that has read the row. A row that has it already, and has cooled since, stays as it is.
CREATE FUNCTION channel_now(c channels) RETURNS channels LANGUAGE plpgsql STABLE AS $$
DECLARE
    h record;
BEGIN
    IF c.is_hot THEN
        SELECT * INTO h FROM hot_state(c.id, true, NULL);
        IF FOUND THEN
            c.seq := h.seq;
            c.ord := h.ord;
            c.last_ts := h.last_ts;
            c.updated_ts := h.updated_ts;
            c.latest_ts := h.latest_ts;
            c.latest_user := h.latest_user;
            c.latest_preview := h.latest_preview;
            c.mention_ts := h.mention_ts;
            c.changed := h.changed;
        END IF;
    END IF;
    RETURN c;
END $$;

-- The last ts of a hot channel. In PL/pgSQL, so that what calls it where a channel is hot is inlined where it is not.
CREATE FUNCTION hot_last_ts(channel text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT s.last_ts FROM hot_state(channel, true, NULL) s);
END $$;

-- Whether channels may become hot: not while a version runs that would not know. Instances say every minute that they run.
CREATE FUNCTION hot_allowed() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN pg_try_advisory_xact_lock_shared(7236403)
           AND NOT EXISTS (SELECT 1 FROM versions_in_use v WHERE NOT v.knows_hot AND v.used_at > now() - interval '10 minutes');
END $$;

-- Locks the head of a hot channel, and answers its turn: NULL when the channel is not hot; or, unless `waits`, when somebody else has it.
CREATE FUNCTION hot_lock(channel text, waits boolean) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found_turn bigint;
BEGIN
    IF waits THEN
        SELECT h.turn INTO found_turn FROM hot_heads h WHERE h.channel_id = channel ORDER BY h.turn DESC LIMIT 1 FOR UPDATE;
    ELSE
        SELECT h.turn INTO found_turn FROM hot_heads h WHERE h.channel_id = channel ORDER BY h.turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    RETURN found_turn;
END $$;

-- These are hot from now on, and is_hot says so. The caller has just written their rows.
CREATE FUNCTION hot_channels_begin(channel_ids text[], now_us bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO hot_heads (channel_id, turn, since, workspace_id, traits, seq, ord, last_ts, updated_ts, latest_ts, latest_user,
                           latest_preview, mention_ts, changed)
    SELECT c.id, hot_turn(now_us), now_us, c.workspace_id, c.type + 4 * c.strategy_in_use + 16 * c.generation, c.seq, c.ord,
           c.last_ts, c.updated_ts, c.latest_ts, c.latest_user, c.latest_preview, c.mention_ts, c.changed
    FROM channels c WHERE c.id = ANY (channel_ids);
    INSERT INTO hot_channels SELECT * FROM unnest(channel_ids);
$$;

-- Makes a hot channel one like others. The caller holds the channel's row lock, and those of no members. Locks the rows of those who posted; and
-- with them, since there is one order, those of `others` whom the caller will lock.
CREATE FUNCTION channel_cool(channel text, others text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last bigint := hot_lock(channel, true);
    h hot_heads;
    authors text[];
    counts bigint[];
BEGIN
    IF last IS NULL THEN
        RETURN;
    END IF;
    DELETE FROM hot_heads x WHERE x.channel_id = channel AND x.turn = last RETURNING * INTO h;
    DELETE FROM hot_channels l WHERE l.channel_id = channel;
    UPDATE channels c SET is_hot = false, seq = h.seq, ord = h.ord, last_ts = h.last_ts, updated_ts = h.updated_ts, latest_ts = h.latest_ts,
        latest_user = h.latest_user, latest_preview = h.latest_preview, mention_ts = h.mention_ts, changed = h.changed
    WHERE c.id = channel;
    WITH gone AS (
        DELETE FROM hot_authors a WHERE a.channel_id = channel AND a.since = h.since RETURNING a.user_id, a.posts
    ) SELECT array_agg(g.user_id), array_agg(g.posts) INTO authors, counts FROM gone g;
    IF authors IS NOT NULL THEN
        PERFORM members_lock(array_fill(channel, ARRAY[cardinality(authors || others)]), authors || others);
        UPDATE channel_members m SET posts = a.posts FROM unnest(authors, counts) AS a (author, posts)
        WHERE m.channel_id = channel AND m.user_id = a.author;
    END IF;
END $$;

-- Makes the first hot channel with an id above `after` to which nobody has posted for so long one like others, and answers its id; NULL: there is
-- none. Waits for nobody: what somebody has locked is not quiet.
CREATE FUNCTION hot_channels_calm(after text, quiet_us bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    channel text := after;
BEGIN
    LOOP
        SELECT l.channel_id INTO channel FROM hot_channels l
        WHERE l.channel_id > channel COLLATE "C"
          AND (SELECT s.last_ts FROM hot_state(l.channel_id, true, NULL) s) <= clock_us() - quiet_us
        ORDER BY l.channel_id LIMIT 1;
        EXIT WHEN channel IS NULL;
        IF hot_lock(channel, false) IS NOT NULL THEN
            PERFORM 1 FROM channels c WHERE c.id = channel FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                PERFORM channel_cool(channel);
                EXIT;
            END IF;
        END IF;
    END LOOP;
    RETURN channel;
END $$;

-- Locks channels, so that nobody posts to them or changes them, in the order of posts.
CREATE FUNCTION channels_hold(channel_ids text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    hot text[];
BEGIN
    PERFORM hot_lock(h.id, true) FROM (SELECT DISTINCT c.id FROM channels c WHERE c.id = ANY (channel_ids) AND c.is_hot ORDER BY 1) h;
    SELECT array_agg(l.id) FILTER (WHERE l.is_hot) INTO hot
    FROM (SELECT c.id, c.is_hot FROM channels c WHERE c.id = ANY (channel_ids) ORDER BY c.id FOR NO KEY UPDATE) l;
    PERFORM hot_lock(h.id, true) FROM unnest(hot) AS h (id); -- those that became hot in between: by posts that wait for no channel any more
END $$;
