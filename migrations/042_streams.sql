-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- What was appended to messages that are being written (chat.appendStream). Lost in a crash of Postgres: their beginning stands.

CREATE UNLOGGED TABLE streams (
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    body text NOT NULL,                   -- all of it
    told integer NOT NULL,                -- characters that frames have told
    told_at timestamptz NOT NULL,
    PRIMARY KEY (channel_id, ts)
);
CREATE INDEX streams_old ON streams (told_at);
