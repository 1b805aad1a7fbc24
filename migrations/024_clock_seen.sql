-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: none
-- takes: milliseconds
-- What instances have seen of Postgres' clock, so that a leap is noticed by all of them. Times are microseconds since 1970.

-- One row.
CREATE TABLE clock_seen (
    us bigint NOT NULL,                   -- the clock when it was noted last
    highest_us bigint NOT NULL,           -- the highest ts that was found ahead of the clock
    leapt_us bigint NOT NULL,             -- when the clock was found to have leapt
    hold_us bigint NOT NULL               -- for how long nothing is deleted from then on
);
INSERT INTO clock_seen VALUES (extract(epoch FROM clock_timestamp()) * 1000000, 0, 0, 0);
