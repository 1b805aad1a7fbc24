-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: none
-- takes: milliseconds
-- What is to be pushed to devices, and what they show. See sql/19_pushes.sql.

-- A device's turn: at most one push to it is under way, so that what it shows last is what was true last.
CREATE TABLE push_turns (
    user_id text COLLATE "C" NOT NULL,
    app text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    due_at timestamptz,                   -- to be looked at; of a device that is leased: again, if nobody settles it; NULL: there is nothing to do
    lease bigint NOT NULL DEFAULT 0,      -- rises each time somebody takes the device
    leased_at timestamptz,                -- NULL: nobody has it
    touched_at timestamptz,               -- when its badge may have changed last
    tries bigint NOT NULL DEFAULT 0,      -- that failed since the last one that did not
    badge bigint,                         -- as the device shows it; NULL: not known
    PRIMARY KEY (user_id, app, device_id),
    FOREIGN KEY (user_id, app, device_id) REFERENCES devices ON DELETE CASCADE
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX push_turns_due ON push_turns (workspace_id, app, due_at) WHERE due_at IS NOT NULL;

-- Conversations, each of a channel or of a thread in it, in which there is something to tell a device, or was lately.
CREATE TABLE push_jobs (
    user_id text COLLATE "C" NOT NULL,
    app text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    thread_ts bigint NOT NULL,            -- 0: the channel itself
    workspace_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,                   -- of the newest message to tell of
    told_ts bigint NOT NULL,              -- up to here it was told, or need not be
    due_at timestamptz,                   -- NULL: there is nothing to tell
    since timestamptz,                    -- since when there is
    rests_until timestamptz NOT NULL DEFAULT '-infinity', -- so that a burst is told of at once
    is_quiet boolean NOT NULL DEFAULT false, -- put off to the end of the quiet hours
    is_shown boolean NOT NULL DEFAULT false, -- the device may show a notification of it
    changed_at timestamptz NOT NULL DEFAULT now(),
    edited_ts bigint,                     -- of the message that was edited last before it was told
    edited_at timestamptz,
    is_dead boolean NOT NULL DEFAULT false,
    reason text,                          -- of the last try that failed
    PRIMARY KEY (user_id, app, device_id, channel_id, thread_ts),
    FOREIGN KEY (user_id, app, device_id) REFERENCES devices ON DELETE CASCADE
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX push_jobs_told ON push_jobs (told_ts, channel_id); -- what an edit or a delete concerns
CREATE INDEX push_jobs_untold ON push_jobs (channel_id, ts) WHERE ts > told_ts; -- the same, of those that may be told just now
CREATE INDEX push_jobs_ended ON push_jobs (changed_at) WHERE due_at IS NULL;
CREATE INDEX push_jobs_dead ON push_jobs (workspace_id, user_id, app, device_id, channel_id, thread_ts) WHERE is_dead;
