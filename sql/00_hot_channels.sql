-- SPDX-License-Identifier: Apache-2.0
-- Hot channels: channels that receive posts while a snapshot of Postgres is held. Until the snapshot ends, Postgres keeps every old version
-- of an updated row, and each lookup by id visits all of them. So the heads of hot channels, and the post counts of their authors, are kept
-- in separate tables, in rows keyed by the time of their last write (docs/decisions/2026-11-23-hot-channels.md).
-- A post to a hot channel locks the channel's row of hot_heads; everything that conflicts with it locks the same row. Events other than
-- posts first make the channel an ordinary one, by channel_cool(). Housekeeping does so after a quiet time.
-- Locks: rows of hot_heads before those of channels. A transaction that holds a single channel may take them in the reverse order.

-- The longest pause between a channel's last event and the post that makes it hot. A hot channel cools when it has had no posts for ten
-- seconds, or when no snapshot is held any more.
CREATE FUNCTION hot_gap_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 2000000 $$;

-- Rounds a time down to its turn. Only a new turn moves a row to another place in its index. Authors' turns are longer, because an author
-- posts less often than the channel as a whole.
CREATE FUNCTION hot_turn(us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT us - us % 50000 $$;
CREATE FUNCTION hot_author_turn(us bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT us - us % 1000000 $$;

-- A channel's type, strategy and generation in one number; include/chat/traits.h unpacks it.
CREATE FUNCTION channel_traits(type bigint, strategy bigint, generation bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT type + 4 * strategy + 16 * generation $$;

-- The head of a hot channel, and the number of posts that `member` has ever made there (NULL: as in the member's row). No row: the channel
-- is not hot.
CREATE FUNCTION hot_state(channel text, is_hot boolean, member text)
RETURNS TABLE (seq bigint, ord bigint, last_ts bigint, updated_ts bigint, latest_ts bigint, latest_user text, latest_preview text,
               mention_ts bigint, changed xid8, posts bigint) LANGUAGE sql STABLE AS $$
    SELECT h.seq, h.ord, h.last_ts, h.updated_ts, h.latest_ts, h.latest_user, h.latest_preview, h.mention_ts, h.changed,
           (SELECT a.posts FROM hot_authors a WHERE a.channel_id = h.channel_id AND a.since = h.since AND a.user_id = member
            ORDER BY a.turn DESC LIMIT 1)
    FROM hot_heads h WHERE is_hot AND h.channel_id = channel ORDER BY h.turn DESC LIMIT 1
$$;

-- The current heads of all channels, hot or not.
CREATE VIEW channel_heads AS
    SELECT c.id, c.workspace_id, c.generation, coalesce(h.seq, c.seq) AS seq, coalesce(h.ord, c.ord) AS ord,
           coalesce(h.last_ts, c.last_ts) AS last_ts, coalesce(h.updated_ts, c.updated_ts) AS updated_ts,
           coalesce(h.changed, c.changed) AS changed
    FROM channels c LEFT JOIN LATERAL hot_state(c.id, c.is_hot, NULL) h ON true;

-- Fills the current head into a channel's row. Belongs in the statement that reads the row. A row that already has its head, and whose
-- channel has cooled since, is returned unchanged.
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

-- The last ts of a hot channel. PL/pgSQL, so that callers which need it only for hot channels can be inlined.
CREATE FUNCTION hot_last_ts(channel text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT s.last_ts FROM hot_state(channel, true, NULL) s);
END $$;

-- Whether channels may become hot: not while a release runs that does not know hot_heads. Instances record every minute that they run. When
-- such a release does, a trigger takes the lock exclusively and cools all channels.
CREATE FUNCTION hot_allowed() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN pg_try_advisory_xact_lock_shared(7236403)
           AND NOT EXISTS (SELECT 1 FROM versions_in_use v WHERE NOT v.knows_hot AND v.used_at > now() - interval '10 minutes');
END $$;

-- Locks the head of a hot channel and returns its turn. NULL: the channel is not hot or, without `waits`, another transaction holds the
-- lock.
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

-- Copies the heads of channels to hot_heads. The caller has just set is_hot in their rows, and so holds their locks.
CREATE FUNCTION hot_channels_begin(channel_ids text[], now_us bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO hot_heads (channel_id, turn, since, workspace_id, traits, seq, ord, last_ts, updated_ts, latest_ts, latest_user,
                           latest_preview, mention_ts, changed)
    SELECT c.id, hot_turn(now_us), now_us, c.workspace_id, channel_traits(c.type, c.strategy_in_use, c.generation), c.seq, c.ord,
           c.last_ts, c.updated_ts, c.latest_ts, c.latest_user, c.latest_preview, c.mention_ts, c.changed
    FROM channels c WHERE c.id = ANY (channel_ids);
    INSERT INTO hot_channels SELECT * FROM unnest(channel_ids);
$$;

-- Makes a hot channel an ordinary one. The caller holds the channel's row lock, and no member's. Locks the rows of members who posted while
-- the channel was hot, together with those of `others`, which the caller needs next: members are locked in one pass, in order.
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

-- Cools the first hot channel with an id above `after` that has had no posts for `quiet_us`, or whose ts is ahead of the clock, and returns
-- its id; NULL: there is none. Never waits: a channel that is locked is not quiet.
CREATE FUNCTION hot_channels_calm(after text, quiet_us bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    channel text := after;
BEGIN
    LOOP
        SELECT l.channel_id INTO channel FROM hot_channels l
        WHERE l.channel_id > channel COLLATE "C"
          AND (SELECT s.last_ts NOT BETWEEN clock_us() - quiet_us AND clock_us() + hot_gap_us() FROM hot_state(l.channel_id, true, NULL) s)
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

-- Locks channels against posts and changes, in the order in which posts lock them.
CREATE FUNCTION channels_hold(channel_ids text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    hot text[];
BEGIN
    PERFORM hot_lock(h.id, true) FROM (SELECT DISTINCT c.id FROM channels c WHERE c.id = ANY (channel_ids) AND c.is_hot ORDER BY 1) h;
    SELECT array_agg(l.id) FILTER (WHERE l.is_hot) INTO hot
    FROM (SELECT c.id, c.is_hot FROM channels c WHERE c.id = ANY (channel_ids) ORDER BY c.id FOR NO KEY UPDATE) l;
    PERFORM hot_lock(h.id, true) FROM unnest(hot) AS h (id); -- became hot in between, so posts to them no longer wait for rows of channels
END $$;
