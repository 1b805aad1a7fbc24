-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: none
-- takes: milliseconds
-- The month of messages that is being dropped: how far the work has come, and what it works from.

-- At most one row.
CREATE TABLE month_expiring (
    month text PRIMARY KEY,               -- the partition of messages
    kept_from bigint NOT NULL,            -- the ts at which the next month begins
    step integer NOT NULL DEFAULT 1,      -- its place in month_steps()
    last_channel text COLLATE "C" NOT NULL DEFAULT '', -- the step's last row: its key
    last_number bigint NOT NULL DEFAULT 0,
    last_user text COLLATE "C" NOT NULL DEFAULT '',
    began timestamptz NOT NULL DEFAULT clock_timestamp(),
    pieces bigint NOT NULL DEFAULT 0,
    rows bigint NOT NULL DEFAULT 0        -- read, changed or deleted
);

-- The last message of each channel in the month.
CREATE TABLE month_channels (
    channel_id text COLLATE "C" PRIMARY KEY,
    ts bigint NOT NULL,
    seq bigint NOT NULL,
    ord bigint NOT NULL
);

-- How many counted posts each author had made in a channel by the end of the month.
CREATE TABLE month_authors (
    channel_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    posts bigint NOT NULL,
    PRIMARY KEY (channel_id, user_id)
);
