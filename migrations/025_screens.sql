-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- contract: 0.2.0 has no pushes
-- What the screen of a device shows, apart from what was decided about it. See sql/20_push_turns.sql.

ALTER TABLE push_turns -- the push that is under way, or was the last one
    ADD sent_kind text,
    ADD sent_channel text COLLATE "C",
    ADD sent_thread bigint,
    ADD sent_ts bigint,
    ADD sent_digest bigint,
    ADD sent_badge bigint;

-- The summary is a conversation of its own, with the channel_id ''.
ALTER TABLE push_jobs
    ADD shown_ts bigint,                  -- of the message that the screen shows, or a later one that it may show; NULL: it shows none
    ADD shown_digest bigint,              -- of its words; NULL: not known
    ADD summed_ts bigint,                 -- the summary speaks of the messages after shown_ts up to here; NULL: of none
    ADD check_at timestamptz,             -- when to compare with the screen; NULL: there is no need
    ADD is_held boolean NOT NULL DEFAULT false; -- put off while its user was active
UPDATE push_jobs SET shown_ts = told_ts WHERE is_shown;
ALTER TABLE push_jobs DROP is_shown, DROP edited_ts, DROP edited_at;

DROP INDEX push_jobs_told;
CREATE INDEX push_jobs_shown ON push_jobs (shown_ts, channel_id) WHERE shown_ts IS NOT NULL; -- what an edit or a delete concerns
CREATE INDEX push_jobs_summed ON push_jobs (summed_ts, channel_id) WHERE summed_ts IS NOT NULL; -- the same
DROP INDEX push_jobs_ended;
CREATE INDEX push_jobs_ended ON push_jobs (changed_at) WHERE due_at IS NULL AND shown_ts IS NULL AND summed_ts IS NULL;
