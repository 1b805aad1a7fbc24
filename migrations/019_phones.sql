-- SPDX-License-Identifier: Apache-2.0
-- release: 0.3.0
-- before: yes
-- locks: none
-- takes: milliseconds
-- Phones: the apps that they are reached by, the devices, and what their users want to be told.

CREATE TABLE push_apps (
    workspace_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    platform text NOT NULL CHECK (platform IN ('apns', 'fcm', 'webpush', 'matrix')),
    fields jsonb NOT NULL,                -- what is public: key_id, team_id, topic, environment; project_id; subject, public_key
    secret text,                          -- sealed: the provider's key; NULL: the platform has none
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    PRIMARY KEY (workspace_id, name)
);

CREATE TABLE devices (
    user_id text COLLATE "C" NOT NULL,
    app text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    address text NOT NULL,                -- sealed: where it is reached, as JSON (include/chat/device_address.h)
    digest text COLLATE "C" NOT NULL,     -- of its token, under the key that sealed the address
    locale text,
    preview text NOT NULL,
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    last_success bigint,                  -- when the provider last took a push
    failing_since bigint,                 -- since when it takes none
    hears_all boolean NOT NULL DEFAULT false, -- its user has level 'all', or all that is unread in the badge
    PRIMARY KEY (user_id, app, device_id),
    FOREIGN KEY (workspace_id, app) REFERENCES push_apps ON DELETE CASCADE,
    UNIQUE (workspace_id, app, digest)
);
CREATE INDEX devices_of_workspace ON devices (workspace_id, user_id);
CREATE INDEX devices_hearing_all ON devices (workspace_id, user_id) WHERE hears_all;

-- A user without a row has what notification_defaults() says.
CREATE TABLE notification_settings (
    user_id text COLLATE "C" PRIMARY KEY,
    level text NOT NULL,
    preview text NOT NULL,
    badge text NOT NULL,
    dnd_start text,                       -- "22:00"; NULL: no quiet hours
    dnd_end text,
    tz text NOT NULL,
    snooze_until bigint NOT NULL DEFAULT 0 -- seconds since 1970
);
