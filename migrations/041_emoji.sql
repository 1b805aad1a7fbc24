-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- A workspace's own emoji.

CREATE TABLE emoji (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text COLLATE "C" NOT NULL,
    url text,                             -- of its picture; NULL: an alias
    alias_for text COLLATE "C",
    added_by text COLLATE "C" NOT NULL,
    added bigint NOT NULL,                -- microseconds since 1970
    PRIMARY KEY (workspace_id, name)
);
