-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: none
-- takes: seconds per million members
-- transaction: no
CREATE INDEX CONCURRENTLY IF NOT EXISTS channel_members_hearing_all ON channel_members (channel_id) WHERE notify = 'every';
