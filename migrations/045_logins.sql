-- SPDX-License-Identifier: Apache-2.0
-- release: 0.4.0
-- before: yes
-- locks: short
-- takes: milliseconds
-- Login with JWTs of an application's own identity provider. See sql/23_logins.sql.

CREATE TABLE auth_providers (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text COLLATE "C" NOT NULL,
    kind text NOT NULL CHECK (kind IN ('jwt', 'oidc')),
    issuer text COLLATE "C" NOT NULL,
    audiences jsonb NOT NULL,             -- an array of strings
    algs text NOT NULL,                   -- 'RS256,ES256'
    key_source text NOT NULL CHECK (key_source IN ('secret', 'keys', 'url', 'discovery')),
    keys text,                            -- sealed: the secret, or PEM, a JWK or a JWK Set
    keys_url text,                        -- of a JWK Set; of 'discovery': what that said last
    rules jsonb NOT NULL,                 -- user_claim, name_claim, email_claim, provision, update_profile, max_lifetime_s, leeway_s, scopes
    created bigint NOT NULL DEFAULT extract(epoch FROM now())::bigint,
    UNIQUE (workspace_id, name)
);
CREATE INDEX auth_providers_by_issuer ON auth_providers (issuer, workspace_id);

ALTER TABLE users
    ADD COLUMN provider_id text COLLATE "C", -- of auth_providers, perhaps deleted; NULL: does not log in by JWT
    ADD COLUMN external_id text COLLATE "C", -- as that provider calls the user
    ADD COLUMN tokens_after bigint;          -- JWTs issued before it (seconds since 1970) are void

ALTER TABLE tokens
    ADD COLUMN issued_at bigint,          -- `iat` of the JWT that it was got for; NULL: none
    ADD COLUMN kept_until bigint;         -- of a token got for a JWT: then the row can be deleted; NULL: never
