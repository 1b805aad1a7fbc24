-- SPDX-License-Identifier: Apache-2.0
-- Identity providers of workspaces, and logins with their JWTs. Signatures and claims are checked before (src/login); who may log in as whom,
-- and for how long, is decided here.

CREATE FUNCTION auth_provider_object(p auth_providers) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('name', p.name, 'kind', p.kind, 'issuer', p.issuer, 'audience', p.audiences,
        'algs', string_to_array(p.algs, ','), 'keys_by', p.key_source, 'jwks_url', CASE WHEN p.key_source = 'url' THEN p.keys_url END,
        'created', p.created)) || p.rules
$$;

CREATE FUNCTION auth_providers_create(workspace text, new_id text, new_name text, new_kind text, new_issuer text, new_audiences text, new_algs text,
                                      new_key_source text, new_keys text, new_keys_url text, new_rules text)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made auth_providers;
BEGIN
    INSERT INTO auth_providers (id, workspace_id, name, kind, issuer, audiences, algs, key_source, keys, keys_url, rules)
    VALUES (new_id, workspace, new_name, new_kind, new_issuer, new_audiences::jsonb, new_algs, new_key_source, new_keys, new_keys_url, new_rules::jsonb)
    ON CONFLICT DO NOTHING RETURNING * INTO made;
    RETURN QUERY SELECT CASE WHEN made.id IS NULL THEN 'name_taken' END,
        CASE WHEN made.id IS NOT NULL THEN jsonb_build_object('provider', auth_provider_object(made))::text END;
END $$;

-- What a change has to be checked against. No row: there is no such provider.
CREATE FUNCTION auth_provider_find(workspace text, of_name text) RETURNS TABLE (id text, kind text, key_source text, algs text) LANGUAGE sql STABLE AS $$
    SELECT p.id, p.kind, p.key_source, p.algs FROM auth_providers p WHERE p.workspace_id = workspace AND p.name = of_name
$$;

-- Changes what is not NULL; of the rules, those given. New keys replace the old ones, wherever these came from.
CREATE FUNCTION auth_providers_update(workspace text, of_id text, new_issuer text, new_audiences text, new_algs text, new_key_source text,
                                      new_keys text, new_keys_url text, new_rules text)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    changed auth_providers;
BEGIN
    UPDATE auth_providers p SET issuer = coalesce(new_issuer, p.issuer), audiences = coalesce(new_audiences::jsonb, p.audiences),
        algs = coalesce(new_algs, p.algs), key_source = coalesce(new_key_source, p.key_source),
        keys = CASE WHEN new_key_source IS NULL THEN p.keys ELSE new_keys END,
        keys_url = CASE WHEN new_key_source IS NULL THEN p.keys_url ELSE new_keys_url END,
        rules = p.rules || new_rules::jsonb
    WHERE p.workspace_id = workspace AND p.id = of_id RETURNING * INTO changed;
    RETURN QUERY SELECT CASE WHEN changed.id IS NULL THEN 'provider_not_found' END,
        CASE WHEN changed.id IS NOT NULL THEN jsonb_build_object('provider', auth_provider_object(changed))::text END;
END $$;

CREATE FUNCTION auth_providers_list(workspace text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, jsonb_build_object('providers', coalesce(jsonb_agg(auth_provider_object(p) ORDER BY p.name), '[]'))::text
    FROM auth_providers p WHERE p.workspace_id = workspace
$$;

-- Its users keep their tokens, and belong to no provider then: another one of the same name has another id.
CREATE FUNCTION auth_providers_delete(workspace text, of_name text) RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM auth_providers p WHERE p.workspace_id = workspace AND p.name = of_name;
    RETURN QUERY SELECT CASE WHEN NOT FOUND THEN 'provider_not_found' END, '{}'::text;
END $$;

-- The keys of providers, for `tidings secrets rotate`.
CREATE FUNCTION auth_provider_keys_stale(current text, after_id text, most bigint) RETURNS TABLE (id text, secret text) LANGUAGE sql STABLE AS $$
    SELECT p.id, p.keys FROM auth_providers p WHERE p.id > after_id AND NOT starts_with(p.keys, current) ORDER BY p.id LIMIT most
$$;

CREATE FUNCTION auth_provider_keys_put(ids text[], olds text[], news text[]) RETURNS TABLE (changed bigint) LANGUAGE sql VOLATILE AS $$
    WITH present AS MATERIALIZED (
        SELECT p.id FROM auth_providers p WHERE p.id = ANY (ids) ORDER BY p.id FOR NO KEY UPDATE
    ), put AS (
        UPDATE auth_providers p SET keys = s.new
        FROM present w JOIN unnest(ids, olds, news) AS s (id, old, new) ON s.id = w.id
        WHERE p.id = s.id AND p.keys = s.old RETURNING 1
    )
    SELECT count(*) FROM put
$$;
