-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: none
-- takes: milliseconds
-- transaction: no
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_by_number ON outbox (number);
