-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- Files: what is known of them. Their bytes are outside of Postgres, in objects.

CREATE TABLE files (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    user_id text COLLATE "C" NOT NULL REFERENCES users,
    name text NOT NULL,
    title text NOT NULL,
    alt_txt text,
    size bigint NOT NULL,                 -- as announced; what is uploaded has just as many bytes
    mimetype text NOT NULL DEFAULT 'application/octet-stream',
    filetype text NOT NULL DEFAULT 'binary',
    object text COLLATE "C",              -- NULL: not uploaded yet
    upload_digest text COLLATE "C" UNIQUE, -- of the secret in its upload URL; NULL: that is used up
    is_complete boolean NOT NULL DEFAULT false,
    is_deleted boolean NOT NULL DEFAULT false,
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint
);
CREATE INDEX files_of_user ON files (user_id, created);
CREATE INDEX files_unfinished ON files (created) WHERE NOT is_complete AND NOT is_deleted;

-- Where a file was posted. With its last share a file is deleted.
CREATE TABLE file_shares (
    file_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    PRIMARY KEY (file_id, channel_id, ts)
);
CREATE INDEX file_shares_of_message ON file_shares (channel_id, ts);
CREATE INDEX file_shares_by_time ON file_shares (ts);

-- Every object that is written is here before its first byte, so that none is forgotten.
CREATE TABLE file_objects (
    object text COLLATE "C" PRIMARY KEY,
    file_id text COLLATE "C" NOT NULL,
    created timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX file_objects_of_file ON file_objects (file_id);

-- Secrets of the URLs of files.sign.
CREATE UNLOGGED TABLE file_grants (
    digest text COLLATE "C" PRIMARY KEY,
    file_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX file_grants_expiring ON file_grants (expires_at);
