-- SPDX-License-Identifier: Apache-2.0
-- Secrets at rest, as `tidings secrets rotate` reads and writes them: sealed (include/base/secrets.h), or plain from before there was a
-- key.

-- The first `most` apps after an id whose signing secret does not begin with the prefix of the `current` key.
CREATE FUNCTION app_secrets_stale(current text, after_id text, most bigint) RETURNS TABLE (id text, secret text) LANGUAGE sql STABLE AS $$
    SELECT a.id, a.signing_secret FROM apps a WHERE a.id > after_id AND NOT starts_with(a.signing_secret, current) ORDER BY a.id LIMIT most
$$;

-- Replaces secrets that have not changed meanwhile. Returns how many.
CREATE FUNCTION app_secrets_put(ids text[], olds text[], news text[]) RETURNS TABLE (changed bigint) LANGUAGE sql VOLATILE AS $$
    WITH present AS MATERIALIZED (
        SELECT a.id FROM apps a WHERE a.id = ANY (ids) ORDER BY a.id FOR NO KEY UPDATE
    ), put AS (
        UPDATE apps a SET signing_secret = s.new
        FROM present p JOIN unnest(ids, olds, news) AS s (id, old, new) ON s.id = p.id
        WHERE a.id = s.id AND a.signing_secret = s.old RETURNING 1
    )
    SELECT count(*) FROM put
$$;

-- The keys of push apps; `id` is "T1/name".
CREATE FUNCTION push_app_secrets_stale(current text, after_id text, most bigint) RETURNS TABLE (id text, secret text) LANGUAGE sql STABLE AS $$
    SELECT a.workspace_id || '/' || a.name, a.secret FROM push_apps a
    WHERE (a.workspace_id, a.name) > (split_part(after_id, '/', 1), split_part(after_id, '/', 2)) AND NOT starts_with(a.secret, current)
    ORDER BY a.workspace_id, a.name LIMIT most
$$;

CREATE FUNCTION push_app_secrets_put(ids text[], olds text[], news text[]) RETURNS TABLE (changed bigint) LANGUAGE sql VOLATILE AS $$
    WITH wanted AS (
        SELECT split_part(s.id, '/', 1) AS workspace, split_part(s.id, '/', 2) AS name, s.old, s.new FROM unnest(ids, olds, news) AS s (id, old, new)
    ), present AS MATERIALIZED (
        SELECT a.workspace_id, a.name, w.new FROM wanted w JOIN push_apps a ON a.workspace_id = w.workspace AND a.name = w.name AND a.secret = w.old
        ORDER BY a.workspace_id, a.name FOR NO KEY UPDATE OF a
    ), put AS (
        UPDATE push_apps a SET secret = p.new FROM present p WHERE a.workspace_id = p.workspace_id AND a.name = p.name RETURNING 1
    )
    SELECT count(*) FROM put
$$;

-- The addresses of devices, with the digests of their tokens; `id` is "U1/app/device".
CREATE FUNCTION device_addresses_stale(current text, after_id text, most bigint) RETURNS TABLE (id text, secret text) LANGUAGE sql STABLE AS $$
    SELECT d.user_id || '/' || d.app || '/' || d.device_id, d.address FROM devices d
    WHERE (d.user_id, d.app, d.device_id) > (split_part(after_id, '/', 1), split_part(after_id, '/', 2), regexp_replace(after_id, '^[^/]*/[^/]*/', ''))
      AND NOT starts_with(d.address, current)
    ORDER BY d.user_id, d.app, d.device_id LIMIT most
$$;

CREATE FUNCTION device_addresses_put(ids text[], olds text[], news text[], digests text[]) RETURNS TABLE (changed bigint) LANGUAGE sql VOLATILE AS $$
    WITH wanted AS (
        SELECT split_part(s.id, '/', 1) AS user_id, split_part(s.id, '/', 2) AS app, regexp_replace(s.id, '^[^/]*/[^/]*/', '') AS device_id,
               s.old, s.new, s.digest
        FROM unnest(ids, olds, news, digests) AS s (id, old, new, digest)
    ), present AS MATERIALIZED (
        SELECT d.user_id, d.app, d.device_id, w.new, w.digest
        FROM wanted w JOIN devices d ON d.user_id = w.user_id AND d.app = w.app AND d.device_id = w.device_id AND d.address = w.old
        ORDER BY d.user_id, d.app, d.device_id FOR UPDATE OF d
    ), put AS (
        UPDATE devices d SET address = p.new, digest = p.digest FROM present p
        WHERE d.user_id = p.user_id AND d.app = p.app AND d.device_id = p.device_id RETURNING 1
    )
    SELECT count(*) FROM put
$$;
