-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: none
-- takes: seconds per million users
-- transaction: no
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS users_by_external_id ON users (provider_id, external_id) WHERE provider_id IS NOT NULL;
