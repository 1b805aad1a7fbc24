-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- Reactions and pins. 0.3.0 sends their events, but neither shows them with messages nor deletes them with a message: see sql/23_reactions.sql.

ALTER TABLE messages ADD COLUMN noted boolean NOT NULL DEFAULT false; -- it has, or had, reactions or a pin

-- Keys begin with ts, unlike those of other tables, so that retention deletes from their beginning.
CREATE TABLE reactions (
    ts bigint NOT NULL,                   -- of the message
    channel_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,       -- of the emoji
    seq bigint NOT NULL,                  -- of the event that added it
    event_ts bigint NOT NULL,             -- and its time
    PRIMARY KEY (ts, channel_id, user_id, name)
);
CREATE INDEX reactions_by_name ON reactions (ts, channel_id, name, seq);
CREATE INDEX reactions_of_user ON reactions (user_id, event_ts, channel_id);

-- How many users have reacted to a message with an emoji; no row: none.
CREATE TABLE reaction_counts (
    ts bigint NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,                  -- of the event that added the first one: the order in which they are shown
    count bigint NOT NULL,
    PRIMARY KEY (ts, channel_id, name)
) WITH (fillfactor = 50);

-- Deleted messages whose reactions are deleted in the background: a message may have more of them than a commit should delete.
CREATE TABLE reactions_gone (
    ts bigint NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (ts, channel_id)
);

CREATE TABLE pins (
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,                   -- of the message
    user_id text COLLATE "C" NOT NULL,    -- who pinned it
    event_ts bigint NOT NULL,             -- when
    PRIMARY KEY (channel_id, ts)
);
