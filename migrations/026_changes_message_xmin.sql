-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- What an edit or a delete overwrites: the transaction that wrote the message's row before. See channel_seq_below().

ALTER TABLE changes ADD COLUMN message_xmin xid; -- NULL: written by 0.2.0, or a note
