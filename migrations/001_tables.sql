-- SPDX-License-Identifier: Apache-2.0
-- release: 0.1.0
-- before: no
-- locks: none
-- takes: milliseconds
-- The truth. Ids are text compared byte by byte; a ts is microseconds since 1970 in a bigint.
-- Every key begins with the channel's or the workspace's id, so that the tables can be distributed by it.

CREATE TABLE workspaces (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    domain text NOT NULL UNIQUE,
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint
);

CREATE TABLE users (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    real_name text NOT NULL,
    email text,
    is_admin boolean NOT NULL DEFAULT false,
    bot_id text COLLATE "C",              -- NULL for people
    active boolean NOT NULL DEFAULT true,
    manual_away boolean NOT NULL DEFAULT false, -- users.setPresence: shown as away whatever is connected
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    updated bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    UNIQUE (workspace_id, name)
);

CREATE INDEX users_of_workspace ON users (workspace_id, id);
CREATE INDEX users_bots ON users (workspace_id, id) WHERE bot_id IS NOT NULL;

CREATE TABLE apps (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    bot_user_id text COLLATE "C" NOT NULL REFERENCES users,
    signing_secret text NOT NULL,
    events_url text,                      -- NULL: Socket Mode
    events text NOT NULL DEFAULT '',      -- it gets: 'app_mention,message.channels'; '' = all
    url_verified boolean NOT NULL DEFAULT false, -- it answered a challenge: events may go there
    verify_at timestamptz NOT NULL DEFAULT now() + interval '1 second', -- of the next challenge
    verify_tries integer NOT NULL DEFAULT 0,
    linked_at timestamptz,                -- when it last had, or was about to open, a link (Socket Mode), give or take some time
    linked_since bigint NOT NULL DEFAULT 0, -- events from then on are kept for it (microseconds since 1970)
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint
);
CREATE INDEX apps_of_workspace ON apps (workspace_id);
CREATE INDEX apps_with_url ON apps (workspace_id) WHERE events_url IS NOT NULL;

-- What goes to the events_url of apps, or is kept for their links. A row stays for some time after its end (frame is NULL then), so
-- that an event that comes once more is known.
CREATE TABLE app_events (
    app_id text COLLATE "C" NOT NULL REFERENCES apps ON DELETE CASCADE,
    channel_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,                  -- negative: of the app_mention beside the message with that seq
    happened bigint NOT NULL,             -- microseconds since 1970
    frame text,
    tries bigint NOT NULL DEFAULT 0,      -- begun
    reason text,                          -- why the last one failed
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- of the next try; while one is under way, when it counts as lost
    queued_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (app_id, channel_id, seq)
);
CREATE INDEX app_events_due ON app_events (app_id, due_at) WHERE frame IS NOT NULL;
CREATE INDEX app_events_queued ON app_events (queued_at);

-- Only the SHA-256 of a token is kept: who reads this table cannot log in.
CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    digest text COLLATE "C" NOT NULL UNIQUE,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    user_id text COLLATE "C" NOT NULL REFERENCES users,
    app_id text COLLATE "C" REFERENCES apps ON DELETE CASCADE,
    type text NOT NULL CHECK (type IN ('user', 'bot', 'app')),
    scopes text NOT NULL DEFAULT '',      -- 'a,b'; '' = all
    rate_limit integer,                   -- calls a minute in place of the setting's
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    expires_at bigint,
    revoked_at bigint,
    last_used bigint
);
CREATE INDEX tokens_of_user ON tokens (user_id);

-- Single-use tickets of rtm.connect. Lost in a crash of Postgres, and then asked for again.
CREATE UNLOGGED TABLE tickets (
    digest text COLLATE "C" PRIMARY KEY,
    token_id text COLLATE "C" NOT NULL,
    native boolean NOT NULL,
    expires_at timestamptz NOT NULL
);

CREATE TABLE channels (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    type smallint NOT NULL DEFAULT 0,     -- 0 public, 1 private, 2 direct of a group, 3 direct of two: enum channel_type
    is_private boolean NOT NULL DEFAULT false, -- all types but 0
    people text COLLATE "C",              -- of a direct conversation, and of no other: the ids of all in it, sorted, "U1,U2"
    is_archived boolean NOT NULL DEFAULT false,
    creator text COLLATE "C" NOT NULL,
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    made xid8,                            -- whose commit channel_created tells of; NULL: nobody is told
    topic text NOT NULL DEFAULT '',
    topic_by text COLLATE "C",            -- NULL as long as it was never set
    topic_at bigint,
    purpose text NOT NULL DEFAULT '',
    purpose_by text COLLATE "C",
    purpose_at bigint,
    previous_names text[],                -- newest first
    strategy text NOT NULL DEFAULT 'auto', -- as chosen
    strategy_in_use smallint NOT NULL DEFAULT 0, -- 0 sequence, 1 zset, 2 counter, 3 bitmap
    generation bigint NOT NULL DEFAULT 0, -- rises whenever what Redis counted for the channel is not to be believed any more
    member_count integer NOT NULL DEFAULT 0,
    numbers integer NOT NULL DEFAULT 0,   -- member numbers given so far
    -- the head
    seq bigint NOT NULL DEFAULT 0,        -- of the last event
    ord bigint NOT NULL DEFAULT 0,        -- of the last counted message
    last_ts bigint NOT NULL DEFAULT 0,    -- the highest ts ever given here
    updated_ts bigint NOT NULL DEFAULT 0, -- of the last counted post, standing or not
    latest_ts bigint NOT NULL DEFAULT 0,  -- of the last counted message that stands
    latest_user text COLLATE "C" NOT NULL DEFAULT '',
    latest_preview text NOT NULL DEFAULT '',
    deleted_ord bigint NOT NULL DEFAULT 0, -- the highest ord ever deleted: above it no deletes need counting
    mention_ts bigint NOT NULL DEFAULT 0, -- no counted message after it mentions the whole channel
    changed xid8 NOT NULL DEFAULT pg_current_xact_id(),
    UNIQUE (workspace_id, name)
) WITH (fillfactor = 50);                 -- each post updates the head in place (HOT)

CREATE INDEX channels_listed ON channels (workspace_id, id) WHERE type = 0;
CREATE INDEX channels_made ON channels (workspace_id, made);
CREATE UNIQUE INDEX channels_of_people ON channels (workspace_id, people) WHERE people IS NOT NULL;

-- A row stays when its user leaves (active = false), so that a later join starts a higher epoch. No foreign keys: the functions
-- that write here check, and a check by triggers would run at each post.
CREATE TABLE channel_members (
    channel_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    active boolean NOT NULL DEFAULT true,
    member_seq bigint NOT NULL,           -- seq of the last join or leave
    number integer NOT NULL DEFAULT -1,   -- dense in the channel; that of one who left is given to the next who joins
    joined_at timestamptz NOT NULL DEFAULT now(),
    muted boolean NOT NULL DEFAULT false,
    notify text NOT NULL DEFAULT 'all',
    closed_ord bigint,                    -- of a direct conversation that its member closed: the channel's ord then; a later post opens it
    -- the cursor
    epoch bigint NOT NULL DEFAULT 0,      -- rises with each markUnread and re-join
    ts bigint NOT NULL DEFAULT 0,
    seq bigint NOT NULL DEFAULT 0,
    ord bigint NOT NULL DEFAULT 0,
    own bigint NOT NULL DEFAULT 0,        -- how many of the member's own counted posts lie at or before the cursor
    posts bigint NOT NULL DEFAULT 0,      -- how many counted posts the member ever made here, kept through leaving
    singles integer NOT NULL DEFAULT 0,   -- rows of read_messages
    single_version bigint NOT NULL DEFAULT 0, -- rises whenever those change, but for a cursor that passes them
    mention_ts bigint NOT NULL DEFAULT 0, -- no counted message after it mentions the member by name
    changed xid8 NOT NULL DEFAULT pg_current_xact_id(), -- but for posts
    PRIMARY KEY (channel_id, user_id)
) WITH (fillfactor = 50);                 -- each post updates its author's row in place
CREATE INDEX channel_members_of_user ON channel_members (user_id, channel_id);
CREATE INDEX channel_members_free ON channel_members (channel_id, number) WHERE NOT active AND number >= 0;

-- Messages after a member's cursor that others wrote and that are read one by one.
CREATE TABLE read_messages (
    channel_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    PRIMARY KEY (channel_id, user_id, ts)
);

CREATE TABLE messages (
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    seq bigint NOT NULL,
    ord bigint NOT NULL,                  -- its own when counted, else that of the last counted one before it
    user_id text COLLATE "C" NOT NULL,
    author_posts bigint NOT NULL DEFAULT 0, -- the author's count of counted posts, this one included
    counted boolean NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    broadcast boolean NOT NULL DEFAULT false,
    thread_ts bigint,
    subtype text,
    body text NOT NULL,
    extra text,                           -- JSON object: blocks, attachments, metadata, inviter …
    client_msg_id text,
    edited_ts bigint,
    edited_by text COLLATE "C",
    PRIMARY KEY (channel_id, ts)
) PARTITION BY RANGE (ts);
CREATE INDEX messages_of_thread ON messages (channel_id, thread_ts, ts) WHERE thread_ts IS NOT NULL;
CREATE INDEX messages_deleted ON messages (channel_id, ord) WHERE deleted AND counted;

-- Who is mentioned by the messages that stand: one row a member who is named, and one for the whole channel (user_id '').
-- Authors are not mentioned by what they wrote, nor are those who were no members then.
CREATE TABLE mentions (
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,                   -- of the message
    user_id text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL,
    thread_ts bigint NOT NULL,            -- of a reply, also one that is broadcast; else 0
    counted boolean NOT NULL,             -- whether the message is: a reply that is not belongs to its thread alone
    sources bigint NOT NULL,              -- bits: 1 in its text, 2 in its blocks
    PRIMARY KEY (channel_id, ts, user_id)
);
CREATE INDEX mentions_of_user ON mentions (channel_id, user_id, ts);

-- Events that are no message of their own: edits and deletes. All others are rows of messages.
CREATE TABLE changes (
    channel_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('edit', 'delete')),
    message_ts bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    event_ts bigint NOT NULL,
    mentioned text[],                     -- by an edit, whose mentions came or went; '': the whole channel's
    PRIMARY KEY (channel_id, seq)
);

-- What has replies. Written under the channel's row lock alone.
CREATE TABLE threads (
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,    -- the root's author
    reply_count integer NOT NULL DEFAULT 0,  -- of those that stand, as all but last_ts
    latest_reply bigint NOT NULL DEFAULT 0,
    last_ts bigint NOT NULL DEFAULT 0,    -- of the last reply, standing or not
    reply_users_count integer NOT NULL DEFAULT 0,
    reply_users text[] NOT NULL DEFAULT '{}', -- some of them
    PRIMARY KEY (channel_id, ts)
) WITH (fillfactor = 50);

-- Who replied in a thread, follows it, or has marked it.
CREATE TABLE thread_members (
    channel_id text COLLATE "C" NOT NULL,
    thread_ts bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    following boolean NOT NULL DEFAULT false,
    since bigint NOT NULL DEFAULT 0,      -- when the following began
    ts bigint NOT NULL DEFAULT 0,         -- the cursor: the last reply that was read; it never goes back
    replies integer NOT NULL DEFAULT 0,   -- of the user, that stand; written under the channel's row lock alone
    changed xid8 NOT NULL DEFAULT pg_current_xact_id(), -- but for replies
    PRIMARY KEY (channel_id, thread_ts, user_id)
) WITH (fillfactor = 50);
CREATE INDEX thread_members_of_user ON thread_members (user_id, following, channel_id, thread_ts);

-- What makes a post safe to repeat: per author, kept for TIDINGS_IDEMPOTENCY_DAYS.
CREATE TABLE message_keys (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    ts bigint NOT NULL,
    digest text COLLATE "C" NOT NULL,     -- of the content
    created timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);
CREATE INDEX message_keys_by_age ON message_keys USING brin (created);

-- One row for each commit that others must hear of; gone when they have. It names its events; their bodies are read back
-- from messages. Events of one user (kind 'mark') have a channel and a user; those of a thread (kinds 'thread_…') also the
-- thread's ts. A batch of posts has an entry a channel, and then what followed from them.
CREATE TABLE outbox (
    id text COLLATE "C" PRIMARY KEY,      -- writer and batch
    created timestamptz NOT NULL DEFAULT now(),
    done boolean NOT NULL DEFAULT false,  -- relayed by another than its writer, who may still ask for it
    channels text[] NOT NULL,
    seqs bigint[] NOT NULL,
    tss bigint[] NOT NULL,                -- of the message concerned
    counts bigint[],                      -- how many posts follow one another from that seq and ts on; NULL: it is one event
    kinds text[] NOT NULL,                -- post edit delete join leave archive unarchive rename created mark preference thread_mark thread_follow strategy
    users text[] NOT NULL,                -- author, or whom it concerns; NULL: the author
    previous text,                        -- body of a message before the edit or delete, for its frame
    previous_extra text                   -- and its extra
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- See eras_begin().
CREATE TABLE eras (
    life text PRIMARY KEY,      -- by what it is known
    number bigint NOT NULL,     -- rises: about when it began, in microseconds
    first_xid xid8 NOT NULL     -- of all that Tidings wrote in it
);

-- Which channels were touched lately: what left the outbox. Together with the outbox it names every change since a
-- transaction, unless that is before change_log_start.
CREATE TABLE change_log (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(), -- of the transaction that moved the row here, after the change
    channels text[] NOT NULL,
    users text[]                          -- whose, when it is about single members alone (marks, preferences); else NULL
);
CREATE INDEX change_log_by_xid ON change_log (xid);
CREATE TABLE change_log_start (xid xid8 NOT NULL); -- one row: rows up to it may be missing
INSERT INTO change_log_start VALUES (pg_current_xact_id());
