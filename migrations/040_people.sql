-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: seconds per million users
-- transaction: no
-- What users' profiles say, which users have changed, and who is found by e-mail address.
SET LOCAL lock_timeout = '500ms'; ALTER TABLE users ADD COLUMN IF NOT EXISTS image_url text, ADD COLUMN IF NOT EXISTS profile jsonb, ADD COLUMN IF NOT EXISTS changed xid8;
-- image_url: NULL: a picture made by Tidings. profile: what users.profile.set has set. changed: the transaction of the last change that others
-- see; NULL: none since 0.3.0.
CREATE INDEX CONCURRENTLY IF NOT EXISTS users_by_email ON users (workspace_id, lower(email)) WHERE email IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS users_changed ON users (workspace_id, changed) WHERE changed IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS apps_of_bot ON apps (bot_user_id);
-- Who is found by the beginning of a word: see users_search().
CREATE INDEX CONCURRENTLY IF NOT EXISTS users_words ON users USING gin (to_tsvector('simple', translate(name || ' ' || real_name, '.-_@/,+:', '        ')));
