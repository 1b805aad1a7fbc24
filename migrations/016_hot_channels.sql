-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- Heads of channels that are posted to often, and what their authors wrote, apart from the wide rows of channels and members. Each of these
-- rows is found by when it was last written: so a post never comes by the versions of before, however long a snapshot keeps them.
-- docs/decisions/2026-11-23-hot-channels.md

-- Its head is in hot_heads.
ALTER TABLE channels ADD COLUMN is_hot boolean NOT NULL DEFAULT false;

-- Those of which is_hot is true.
CREATE TABLE hot_channels (channel_id text COLLATE "C" PRIMARY KEY);

-- One row a hot channel: columns as those of channels, but for these.
CREATE TABLE hot_heads (
    channel_id text COLLATE "C" NOT NULL,
    turn bigint NOT NULL,                 -- when it was last written, rounded: in microseconds since 1970
    since bigint NOT NULL,                -- when the channel became hot
    workspace_id text COLLATE "C" NOT NULL,
    traits bigint NOT NULL,               -- type + 4 strategy_in_use + 16 generation
    seq bigint NOT NULL,
    ord bigint NOT NULL,
    last_ts bigint NOT NULL,
    updated_ts bigint NOT NULL,
    latest_ts bigint NOT NULL,
    latest_user text COLLATE "C" NOT NULL,
    latest_preview text NOT NULL,
    mention_ts bigint NOT NULL,
    changed xid8 NOT NULL,
    PRIMARY KEY (channel_id, turn)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- One row a member who posted to a hot channel since it is one; in channel_members stands what was before.
CREATE TABLE hot_authors (
    channel_id text COLLATE "C" NOT NULL,
    since bigint NOT NULL,                -- that of the channel's row in hot_heads
    user_id text COLLATE "C" NOT NULL,
    turn bigint NOT NULL,
    posts bigint NOT NULL,                -- ever, as in channel_members
    PRIMARY KEY (channel_id, since, user_id, turn)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Whether a version looks there. Before one that does not says that it runs, all heads go back to where it looks;
-- and while it does, none leaves.
ALTER TABLE versions_in_use ADD COLUMN knows_hot boolean NOT NULL DEFAULT false;

CREATE FUNCTION hot_channels_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    h hot_heads;
    channel text;
BEGIN
    PERFORM pg_advisory_xact_lock(7236403);
    FOR channel IN SELECT l.channel_id FROM hot_channels l ORDER BY l.channel_id LOOP
        SELECT * INTO h FROM hot_heads x WHERE x.channel_id = channel ORDER BY x.turn DESC LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND; -- it ended just now
        UPDATE channels c SET is_hot = false, seq = h.seq, ord = h.ord, last_ts = h.last_ts, updated_ts = h.updated_ts, latest_ts = h.latest_ts,
            latest_user = h.latest_user, latest_preview = h.latest_preview, mention_ts = h.mention_ts, changed = h.changed
        WHERE c.id = channel;
        UPDATE channel_members m SET posts = a.posts
        FROM (SELECT DISTINCT ON (x.user_id) x.user_id, x.posts FROM hot_authors x WHERE x.channel_id = channel AND x.since = h.since
              ORDER BY x.user_id, x.turn DESC) a
        WHERE m.channel_id = channel AND m.user_id = a.user_id;
        DELETE FROM hot_authors a WHERE a.channel_id = channel AND a.since = h.since;
        DELETE FROM hot_heads x WHERE x.channel_id = channel AND x.turn = h.turn;
        DELETE FROM hot_channels l WHERE l.channel_id = channel;
    END LOOP;
    RETURN NEW;
END $$;
CREATE TRIGGER hot_channels_end BEFORE INSERT OR UPDATE ON versions_in_use
    FOR EACH ROW WHEN (NOT NEW.knows_hot) EXECUTE FUNCTION hot_channels_end();
