-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: short
-- takes: seconds per million users and channels; then a minute per million to fold their names
-- transaction: no
SET LOCAL lock_timeout = '500ms'; ALTER TABLE channels ADD COLUMN IF NOT EXISTS folded text COLLATE "C", ADD COLUMN IF NOT EXISTS folded_from text;
SET LOCAL lock_timeout = '500ms'; ALTER TABLE users ADD COLUMN IF NOT EXISTS folded text COLLATE "C", ADD COLUMN IF NOT EXISTS folded_from text;
-- The name by which channels and users of a workspace are told apart, made by unicode_fold() of folded_from. It is of no account while that is
-- not the name: 0.2.0 does not know these columns. NULL: another one looks the same.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS channels_folded ON channels (workspace_id, folded) WHERE folded_from = name;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS users_folded ON users (workspace_id, folded) WHERE folded_from = name;
-- Those to be looked at: see names_fold().
CREATE INDEX CONCURRENTLY IF NOT EXISTS channels_unfolded ON channels (id)
    WHERE people IS NULL AND (folded IS NULL OR folded_from IS DISTINCT FROM name);
CREATE INDEX CONCURRENTLY IF NOT EXISTS users_unfolded ON users (id) WHERE folded IS NULL OR folded_from IS DISTINCT FROM name;
