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

-- The providers that a JWT may be of. `in_workspace`: an id or a domain; '': any.
CREATE FUNCTION login_providers(of_issuer text, for_audiences text[], in_workspace text, most bigint)
RETURNS TABLE (id text, audiences text, algs text, key_source text, keys text, rules text) LANGUAGE sql STABLE AS $$
    SELECT p.id, p.audiences::text, p.algs, p.key_source, p.keys, p.rules::text
    FROM auth_providers p JOIN workspaces w ON w.id = p.workspace_id
    WHERE p.issuer = of_issuer AND p.audiences ?| for_audiences AND (in_workspace = '' OR in_workspace IN (w.id, w.domain))
    ORDER BY p.created, p.id LIMIT most
$$;

-- Creates the user of a JWT, by the first of the names that is free. NULL: the user exists meanwhile, or no name is free.
CREATE FUNCTION login_user_create(p auth_providers, external text, new_id text, names text[], folded_names text[], new_real_name text, new_email text)
RETURNS users LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made users;
BEGIN
    FOR n IN 1..cardinality(names) LOOP
        INSERT INTO users (id, workspace_id, name, folded, folded_from, real_name, email, provider_id, external_id, changed)
        VALUES (new_id, p.workspace_id, names[n], folded_names[n], names[n], new_real_name, new_email, p.id, external, pg_current_xact_id())
        ON CONFLICT DO NOTHING RETURNING * INTO made;
        EXIT WHEN made.id IS NOT NULL OR EXISTS (SELECT FROM users u WHERE u.provider_id = p.id AND u.external_id = external);
    END LOOP;
    RETURN made;
END $$;

-- Stores a token for the bearer of a JWT whose signature and claims are good. `new_digest`: of the token; `jwt_digest`: of the JWT itself, whose
-- own token may have been revoked. `claim_*`: NULL where the JWT does not say. `happened`: 'team_join' or 'user_change', with `changed` as
-- users_create() has it.
CREATE FUNCTION login_complete(of_provider text, external text, jwt_issued_at bigint, jwt_expires_at bigint, jwt_digest text, new_token_id text,
                               new_digest text, new_user_id text, names text[], folded_names text[], claim_name text, claim_email text)
RETURNS TABLE (error text, workspace text, reply text, happened text, changed text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    p auth_providers;
    u users;
    now_s bigint := extract(epoch FROM now())::bigint;
    expires bigint;
BEGIN
    -- A deleted provider logs nobody in any more; neither does one whose rules have just changed by its old ones.
    SELECT * INTO p FROM auth_providers x WHERE x.id = of_provider FOR SHARE;
    SELECT * INTO u FROM users x WHERE x.provider_id = p.id AND x.external_id = external;
    IF u.id IS NULL AND p.rules ->> 'provision' = 'create' THEN
        u := login_user_create(p, external, new_user_id, names, folded_names, coalesce(claim_name, names[1]), claim_email);
        happened := CASE WHEN u.id IS NOT NULL THEN 'team_join' END;
        IF u.id IS NULL THEN
            SELECT * INTO u FROM users x WHERE x.provider_id = p.id AND x.external_id = external;
        END IF;
    END IF;
    -- Who deactivates a user, or revokes the tokens, waits for this one, or is waited for.
    SELECT * INTO u FROM users x WHERE x.id = u.id FOR NO KEY UPDATE;
    error := CASE WHEN p.id IS NULL THEN 'invalid_token'
                  WHEN u.id IS NULL THEN 'user_not_found'
                  WHEN NOT u.active THEN 'account_inactive'
                  WHEN u.tokens_after > coalesce(jwt_issued_at, -1) THEN 'invalid_token'
                  WHEN EXISTS (SELECT FROM tokens t WHERE t.digest = jwt_digest AND t.revoked_at IS NOT NULL) THEN 'invalid_token' END;
    IF error IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF (p.rules ->> 'update_profile')::boolean
       AND (coalesce(claim_name, u.real_name), coalesce(claim_email, u.email)) IS DISTINCT FROM (u.real_name, u.email) THEN
        UPDATE users x SET real_name = coalesce(claim_name, x.real_name), email = coalesce(claim_email, x.email), updated = now_s,
            changed = pg_current_xact_id()
        WHERE x.id = u.id RETURNING * INTO u;
        happened := coalesce(happened, 'user_change');
    END IF;
    expires := least(jwt_expires_at + (p.rules ->> 'leeway_s')::bigint, now_s + (p.rules ->> 'max_lifetime_s')::bigint);
    INSERT INTO tokens (id, digest, workspace_id, user_id, type, scopes, expires_at, issued_at, kept_until)
    VALUES (new_token_id, new_digest, u.workspace_id, u.id, 'user', p.rules ->> 'scopes', expires, jwt_issued_at,
            jwt_expires_at + (p.rules ->> 'leeway_s')::bigint + 86400)
    ON CONFLICT (digest) DO NOTHING; -- the same JWT, on another instance
    workspace := u.workspace_id;
    reply := format('{"expires_at":%s,"user":%s,"workspace":%s}', expires, user_reply(u, true),
                    (SELECT json_build_object('id', w.id, 'name', w.name, 'domain', w.domain) FROM workspaces w WHERE w.id = u.workspace_id));
    changed := CASE WHEN happened IS NOT NULL THEN user_change_object(u) END;
    RETURN NEXT;
END $$;

-- Revokes the tokens of a user that were created, or whose JWT was issued, before a moment. JWTs from before it log nobody in any more.
CREATE FUNCTION users_revoke_tokens(workspace text, owner text, issued_before bigint) RETURNS TABLE (error text, reply text, id text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    count bigint;
BEGIN
    UPDATE users u SET tokens_after = greatest(u.tokens_after, issued_before) WHERE u.id = owner AND (u.workspace_id = workspace) IS TRUE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'user_not_found', NULL::text, NULL::text;
        RETURN;
    END IF;
    UPDATE tokens t SET revoked_at = extract(epoch FROM now())::bigint
    WHERE t.user_id = owner AND t.revoked_at IS NULL AND coalesce(t.issued_at, t.created) < issued_before;
    GET DIAGNOSTICS count = ROW_COUNT;
    RETURN QUERY SELECT NULL::text, json_build_object('revoked', count)::text, owner;
END $$;
