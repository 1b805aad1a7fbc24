-- SPDX-License-Identifier: Apache-2.0
-- Workspaces, users, tokens, apps.

-- One URL for all sizes, or for each a picture made by the service.
CREATE FUNCTION picture_url(u users, size integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce(u.image_url, current_setting('tidings.url', true) || '/avatars/' || size || '/' || u.id || '.png')
$$;

-- The members of a profile that nobody has set.
CREATE FUNCTION profile_first(u users) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'title', '', 'phone', '', 'skype', '', 'pronouns', '', 'first_name', split_part(u.real_name, ' ', 1),
        'last_name', btrim(substr(u.real_name, strpos(u.real_name || ' ', ' '))), 'display_name', u.name,
        'status_text', '', 'status_emoji', '', 'status_expiration', 0, 'fields', '{}'::jsonb)
$$;

CREATE FUNCTION profile_object(u users, with_email boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT p.own || jsonb_strip_nulls(jsonb_build_object(
        'real_name', u.real_name, 'real_name_normalized', u.real_name, 'display_name_normalized', p.own -> 'display_name',
        'email', CASE WHEN with_email THEN u.email END, 'team', u.workspace_id, 'avatar_hash', '', 'bot_id', u.bot_id,
        'is_custom_image', CASE WHEN u.image_url IS NOT NULL THEN true END, 'image_original', u.image_url,
        'image_24', picture_url(u, 24), 'image_32', picture_url(u, 32), 'image_48', picture_url(u, 48), 'image_72', picture_url(u, 72),
        'image_192', picture_url(u, 192), 'image_512', picture_url(u, 512)))
    FROM (SELECT profile_first(u) || coalesce(u.profile, '{}') AS own) p
$$;

CREATE FUNCTION user_object(u users, with_email boolean) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'id', u.id, 'team_id', u.workspace_id, 'name', u.name, 'deleted', NOT u.active, 'color', '9f69e7', 'real_name', u.real_name,
        'tz', 'Etc/UTC', 'tz_label', 'Coordinated Universal Time', 'tz_offset', 0,
        'profile', profile_object(u, with_email),
        'is_admin', u.is_admin, 'is_owner', u.is_admin, 'is_primary_owner', false, 'is_restricted', false, 'is_ultra_restricted', false,
        'is_bot', u.bot_id IS NOT NULL, 'is_app_user', false, 'updated', u.updated)
$$;

-- A bot's object has its bot_id at the top level too. `with_email`: the reader may see it; never for what is sent to many.
CREATE FUNCTION user_reply(u users, with_email boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN u.bot_id IS NULL THEN user_object(u, with_email)::text
                ELSE (user_object(u, with_email)::jsonb || jsonb_build_object('bot_id', u.bot_id))::text END
$$;

-- As `caller` sees it: with the own e-mail address, or that of anybody if the token `reads_email`.
CREATE FUNCTION user_shown(u users, caller text, reads_email boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT user_reply(u, reads_email OR u.id = caller)
$$;

-- With the locale, for clients that ask for it. Users cannot choose one, so all have Slack's default.
CREATE FUNCTION user_shown(u users, caller text, reads_email boolean, with_locale boolean) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN with_locale THEN left(user_shown(u, caller, reads_email), -1) || ',"locale":"en-US"}'
                ELSE user_shown(u, caller, reads_email) END
$$;

-- The user of that name, else of one that looks the same.
CREATE FUNCTION user_named(workspace text, user_name text, user_folded text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT n.id FROM (SELECT u.id, 1 AS rank FROM users u WHERE u.workspace_id = workspace AND u.name = user_name
                      UNION ALL SELECT u.id, 2 FROM users u
                      WHERE u.workspace_id = workspace AND u.folded = user_folded AND u.folded_from = u.name) n ORDER BY n.rank LIMIT 1
$$;

-- As bots.info and rtm.start show a bot.
CREATE FUNCTION bot_object(u users) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object('id', u.bot_id, 'deleted', NOT u.active, 'name', u.name, 'updated', u.updated,
                             'app_id', bot_app_id(u.id, u.bot_id), 'user_id', u.id,
                             'icons', json_build_object('image_36', picture_url(u, 32), 'image_48', picture_url(u, 48),
                                                        'image_72', picture_url(u, 72)))
$$;

CREATE FUNCTION workspaces_create(new_id text, admin_id text, token_id text, token_digest text, workspace_name text, workspace_domain text)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO workspaces (id, name, domain) VALUES (new_id, workspace_name, workspace_domain) ON CONFLICT (domain) DO NOTHING;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'name_taken', NULL::text;
        RETURN;
    END IF;
    INSERT INTO users (id, workspace_id, name, folded, folded_from, real_name, is_admin)
    VALUES (admin_id, new_id, 'admin', 'admin', 'admin', 'Administrator', true);
    INSERT INTO tokens (id, digest, workspace_id, user_id, type) VALUES (token_id, token_digest, new_id, admin_id, 'user');
    RETURN QUERY SELECT NULL::text, json_build_object('workspace', json_build_object('id', new_id, 'name', workspace_name,
                                                                                    'domain', workspace_domain))::text;
END $$;

-- `user_folded`: the name by unicode_fold(). `changed`: what other clients receive about it.
CREATE FUNCTION users_create(workspace text, new_id text, new_bot_id text, user_name text, user_folded text, user_real_name text,
                             user_email text, admin boolean)
RETURNS TABLE (error text, reply text, changed text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO users (id, workspace_id, name, folded, folded_from, real_name, email, is_admin, bot_id, changed)
    VALUES (new_id, workspace, user_name, user_folded, user_name, coalesce(user_real_name, user_name), user_email, admin, new_bot_id,
            pg_current_xact_id())
    ON CONFLICT DO NOTHING; -- the name, or its folded form
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'name_taken', NULL::text, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY SELECT NULL::text, '{"user":' || user_reply(u, true) || '}', user_change_object(u)
    FROM users u WHERE u.id = new_id;
END $$;

-- Creates many users. Returns the position and the object of each; NULL: the name was NULL, or is taken.
CREATE FUNCTION users_create_many(workspace text, ids text[], bot_ids text[], names text[], real_names text[], emails text[],
                                  folded_names text[], admins boolean[])
RETURNS TABLE (n bigint, reply text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO users (id, workspace_id, name, folded, folded_from, real_name, email, is_admin, bot_id, changed)
    SELECT a.id, workspace, a.name, a.folded, a.name, coalesce(a.real_name, a.name), a.email, a.is_admin, a.bot_id, pg_current_xact_id()
    FROM unnest(ids, bot_ids, names, real_names, emails, folded_names, admins)
        WITH ORDINALITY AS a (id, bot_id, name, real_name, email, folded, is_admin, n)
    WHERE a.name IS NOT NULL
    ORDER BY a.folded COLLATE "C", a.n -- so that calls with the same names cannot deadlock
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT a.n, CASE WHEN u.id IS NOT NULL THEN user_reply(u, true) END
    FROM unnest(ids) WITH ORDINALITY AS a (id, n) LEFT JOIN users u ON u.id = a.id;
END $$;

-- `changed`: as above.
CREATE FUNCTION users_set_active(workspace text, user_id text, now_active boolean) RETURNS TABLE (error text, reply text, changed text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    object text;
BEGIN
    UPDATE users u SET active = now_active, updated = extract(epoch FROM now())::bigint, changed = pg_current_xact_id() WHERE u.id = user_id AND (u.workspace_id = workspace) IS TRUE
    RETURNING user_reply(u, false) INTO object;
    IF object IS NOT NULL THEN
        PERFORM push_recheck(user_id, NULL);
    END IF;
    RETURN QUERY SELECT CASE WHEN object IS NULL THEN 'user_not_found' END, '{}'::text, '{"user":' || object || '}';
END $$;

-- `token_type` NULL: by the kind of user. Only the digest for the resulting type is stored.
CREATE FUNCTION tokens_create(workspace text, owner text, token_id text, user_digest text, bot_digest text, token_type text, token_scopes text,
                              expires_in bigint, calls_a_minute integer)
RETURNS TABLE (error text, type text, expires_at bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    u users;
    kind text;
BEGIN
    SELECT * INTO u FROM users x WHERE x.id = owner AND (x.workspace_id = workspace) IS TRUE;
    IF u.id IS NULL THEN
        RETURN QUERY SELECT 'user_not_found', NULL::text, NULL::bigint;
        RETURN;
    END IF;
    kind := coalesce(token_type, CASE WHEN u.bot_id IS NULL THEN 'user' ELSE 'bot' END);
    RETURN QUERY INSERT INTO tokens AS t (id, digest, workspace_id, user_id, type, scopes, expires_at, rate_limit)
        VALUES (token_id, CASE kind WHEN 'bot' THEN bot_digest ELSE user_digest END, workspace, owner, kind, token_scopes,
                extract(epoch FROM now())::bigint + expires_in, calls_a_minute)
        RETURNING NULL::text, t.type, t.expires_at;
END $$;

-- By id or by digest; the other one is NULL. Also returns the token's id.
CREATE FUNCTION tokens_revoke(workspace text, token_id text, token_digest text) RETURNS TABLE (error text, reply text, id text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    revoked text;
BEGIN
    UPDATE tokens t SET revoked_at = coalesce(t.revoked_at, extract(epoch FROM now())::bigint)
    WHERE t.workspace_id = workspace AND (t.id = token_id OR t.digest = token_digest) RETURNING t.id INTO revoked;
    RETURN QUERY SELECT CASE WHEN revoked IS NULL THEN 'token_not_found' END, CASE WHEN revoked IS NOT NULL THEN '{"revoked":true}' END, revoked;
END $$;

CREATE FUNCTION tokens_list(workspace text, owner text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN u.id IS NULL THEN 'user_not_found' END,
           CASE WHEN u.id IS NOT NULL THEN json_build_object('tokens', coalesce((
               SELECT json_agg(json_strip_nulls(json_build_object('token_id', t.id, 'type', t.type, 'scopes', t.scopes, 'created', t.created,
                                                                  'expires_at', t.expires_at, 'last_used', t.last_used)) ORDER BY t.created, t.id)
               FROM tokens t WHERE t.user_id = owner AND t.workspace_id = workspace AND t.revoked_at IS NULL), '[]'::json))::text END
    FROM (SELECT 1) one LEFT JOIN users u ON u.id = owner AND (u.workspace_id = workspace) IS TRUE
$$;

CREATE FUNCTION apps_create(workspace text, new_id text, app_name text, bot text, secret text, url text, token_id text, token_digest text,
                            wanted text)
RETURNS TABLE (error text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM users u WHERE u.id = bot AND (u.workspace_id = workspace) IS TRUE AND u.bot_id IS NOT NULL) THEN
        RETURN QUERY SELECT 'user_not_found';
        RETURN;
    END IF;
    INSERT INTO apps (id, workspace_id, name, bot_user_id, signing_secret, events_url, events)
    VALUES (new_id, workspace, app_name, bot, secret, url, wanted);
    INSERT INTO tokens (id, digest, workspace_id, user_id, app_id, type) VALUES (token_id, token_digest, workspace, bot, new_id, 'app');
    RETURN QUERY SELECT NULL::text;
END $$;

CREATE FUNCTION apps_delete(workspace text, app_id text) RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM apps a WHERE a.id = app_id AND (a.workspace_id = workspace) IS TRUE;
    RETURN QUERY SELECT CASE WHEN NOT FOUND THEN 'app_not_found' END, '{}'::text;
END $$;
