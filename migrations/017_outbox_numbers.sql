-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: short
-- takes: milliseconds, and as many seconds as the outbox has hundreds of thousands of rows
-- Where the outbox begins, so that who looks into it does not come by rows that are gone but that a snapshot keeps.

CREATE SEQUENCE outbox_numbers;
ALTER TABLE outbox ADD COLUMN number bigint;
ALTER TABLE outbox ALTER COLUMN number SET DEFAULT nextval('outbox_numbers');
UPDATE outbox SET number = nextval('outbox_numbers');

-- One row: no row of the outbox has a lower number. See outbox_start_move().
CREATE TABLE outbox_start (
    number bigint NOT NULL,
    next_number bigint NOT NULL,          -- numbers of transactions from next_xid on are above it
    next_xid xid8 NOT NULL
);
INSERT INTO outbox_start VALUES (0, 0, pg_current_xact_id());
