-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- Incoming webhooks: secret URLs to which tools post a message without a token.

CREATE TABLE webhooks (
    id text COLLATE "C" PRIMARY KEY,      -- the bot_id of its bot: B…
    digest text COLLATE "C" NOT NULL UNIQUE, -- of the URL's path after /services/
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    user_id text COLLATE "C" NOT NULL REFERENCES users, -- the bot that posts
    channel_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    icon_url text,
    icon_emoji text,
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint
);
CREATE INDEX webhooks_of_workspace ON webhooks (workspace_id, id);
