-- SPDX-License-Identifier: Apache-2.0
-- Secrets at rest, as `tidings secrets rotate` reads and writes them: sealed texts (include/base/secrets.h), or clear ones from before there
-- was a key.

-- Of the apps after one, at most `most` whose signing secret does not begin with the `current` key's prefix.
CREATE FUNCTION app_secrets_stale(current text, after_id text, most bigint) RETURNS TABLE (id text, secret text) LANGUAGE sql STABLE AS $$
    SELECT a.id, a.signing_secret FROM apps a WHERE a.id > after_id AND NOT starts_with(a.signing_secret, current) ORDER BY a.id LIMIT most
$$;

-- Puts new texts in the place of old ones, where these still are. How many.
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
