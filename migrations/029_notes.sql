-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- contract: the check is replaced by a wider one, which allows all that the previous release writes.
-- Notes: events about a message that count for nobody, such as reactions. This release reads them; the next one writes them.

ALTER TABLE changes
    DROP CONSTRAINT changes_kind_check,
    ADD CONSTRAINT changes_kind_check CHECK (kind IN ('edit', 'delete', 'note')) NOT VALID,
    ADD COLUMN name text,                 -- of a note: the type of its frame
    ADD COLUMN data text;                 -- of a note: a JSON object, the members of its frame
