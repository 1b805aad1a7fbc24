-- SPDX-License-Identifier: Apache-2.0
-- Profiles, look-up of users, and what else a workspace shows of itself.

-- What a user's change is answered with, and what others receive about it.
CREATE FUNCTION user_change_object(u users) RETURNS text LANGUAGE sql STABLE AS $$ SELECT '{"user":' || user_reply(u, false) || '}' $$;

CREATE FUNCTION users_profile_get(workspace text, caller text, target text, reads_email boolean) RETURNS TABLE (error text, reply text)
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN u.id IS NULL THEN 'user_not_found' END,
           '{"profile":' || profile_object(u, reads_email OR u.id = caller)::text || '}'
    FROM (SELECT 1) one LEFT JOIN users u ON u.id = target AND (u.workspace_id = workspace) IS TRUE
$$;

-- `patch`: members to set; '' means the first value again. `new_real_name` NULL: as it is. The target is the caller, or the caller an admin.
CREATE FUNCTION users_profile_set(workspace text, caller text, target text, patch jsonb, new_real_name text)
RETURNS TABLE (error text, reply text, changed text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    u users;
    merged jsonb;
BEGIN
    SELECT * INTO u FROM users x WHERE x.id = target AND (x.workspace_id = workspace) IS TRUE FOR NO KEY UPDATE;
    IF u.id IS NULL THEN
        RETURN QUERY SELECT 'user_not_found', NULL::text, NULL::text;
        RETURN;
    END IF;
    SELECT coalesce(jsonb_object_agg(e.key, e.value), '{}') INTO merged
    FROM jsonb_each(coalesce(u.profile, '{}') || patch) AS e (key, value) WHERE e.value NOT IN ('""', '0', '{}');
    IF octet_length(merged::text) > 16384 THEN
        RETURN QUERY SELECT 'invalid_profile', NULL::text, NULL::text;
        RETURN;
    END IF;
    UPDATE users x SET profile = merged, real_name = coalesce(new_real_name, x.real_name), updated = extract(epoch FROM now())::bigint,
        changed = pg_current_xact_id()
    WHERE x.id = target RETURNING * INTO u;
    RETURN QUERY SELECT NULL::text, '{"profile":' || profile_object(u, u.id = caller)::text || '}', user_change_object(u);
END $$;

-- Each argument NULL: as it is; `new_email`, `new_image` and `external` '': none from now on. `of_provider` calls the user `external`.
CREATE FUNCTION users_update(workspace text, target text, new_name text, new_folded text, new_real_name text, new_email text, new_image text,
                             new_admin boolean, of_provider text, external text)
RETURNS TABLE (error text, reply text, changed text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    u users;
    p auth_providers;
BEGIN
    SELECT * INTO p FROM auth_providers x WHERE x.workspace_id = workspace AND x.name = of_provider FOR KEY SHARE;
    IF of_provider IS NOT NULL AND p.id IS NULL THEN
        RETURN QUERY SELECT 'provider_not_found', NULL::text, NULL::text;
        RETURN;
    END IF;
    UPDATE users x SET name = coalesce(new_name, x.name), folded = CASE WHEN new_name IS NULL THEN x.folded ELSE new_folded END,
        folded_from = coalesce(new_name, x.folded_from), real_name = coalesce(new_real_name, x.real_name),
        email = CASE WHEN new_email IS NULL THEN x.email ELSE NULLIF(new_email, '') END,
        image_url = CASE WHEN new_image IS NULL THEN x.image_url ELSE NULLIF(new_image, '') END,
        provider_id = CASE WHEN external IS NULL THEN x.provider_id WHEN external <> '' THEN p.id END,
        external_id = CASE WHEN external IS NULL THEN x.external_id ELSE NULLIF(external, '') END,
        is_admin = coalesce(new_admin, x.is_admin), updated = extract(epoch FROM now())::bigint, changed = pg_current_xact_id()
    WHERE x.id = target AND (x.workspace_id = workspace) IS TRUE AND (external IS NULL OR x.bot_id IS NULL) RETURNING * INTO u;
    IF u.id IS NULL THEN
        RETURN QUERY SELECT 'user_not_found', NULL::text, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY SELECT NULL::text, jsonb_build_object('user', user_reply(u, true)::jsonb || jsonb_strip_nulls(
            jsonb_build_object('provider', (SELECT x.name FROM auth_providers x WHERE x.id = u.provider_id), 'external_id', u.external_id)))::text,
        user_change_object(u);
EXCEPTION WHEN unique_violation THEN
    RETURN QUERY SELECT 'name_taken', NULL::text, NULL::text;
END $$;

-- Of several the active one, then the oldest.
CREATE FUNCTION users_by_email(workspace text, caller text, address text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN f.x IS NULL THEN 'users_not_found' END, '{"user":' || user_shown(f.x, caller, true) || '}'
    FROM (SELECT 1) one LEFT JOIN LATERAL (
        SELECT u AS x FROM users u WHERE u.workspace_id = workspace AND u.email IS NOT NULL AND lower(u.email) = lower(address)
        ORDER BY NOT u.active, u.created, u.id LIMIT 1) f ON true
$$;

-- The words of a user's names. The index users_words is on the same expression.
CREATE FUNCTION users_search(workspace text, caller text, query text, count integer, reads_email boolean) RETURNS TABLE (object text)
LANGUAGE sql STABLE AS $$
    SELECT user_shown(f.x, caller, reads_email)
    FROM (SELECT u AS x FROM users u
          WHERE u.workspace_id = workspace
            AND to_tsvector('simple', translate(u.name || ' ' || u.real_name, '.-_@/,+:', '        '))
                @@ (SELECT string_agg(quote_literal(w) || ':*', ' & ')::tsquery
                    FROM unnest(tsvector_to_array(to_tsvector('simple', translate(query, '.-_@/,+:', '        ')))) AS w)
          LIMIT 10000) f
    ORDER BY NOT (f.x).active, (f.x).name, (f.x).id LIMIT count
$$;

CREATE FUNCTION users_identity(workspace text, caller text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, jsonb_build_object(
        'user', jsonb_strip_nulls(jsonb_build_object('id', u.id, 'name', u.real_name, 'email', u.email, 'image_24', picture_url(u, 24),
            'image_32', picture_url(u, 32), 'image_48', picture_url(u, 48), 'image_72', picture_url(u, 72),
            'image_192', picture_url(u, 192), 'image_512', picture_url(u, 512))),
        'team', jsonb_build_object('id', w.id, 'name', w.name, 'domain', w.domain))::text
    FROM users u JOIN workspaces w ON w.id = u.workspace_id WHERE u.id = caller
$$;

-- The ids of users that have changed since a transaction, as a JSON array; 'null': too many to tell.
CREATE FUNCTION users_changed(workspace text, since xid8) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN count(*) > 1000 THEN 'null' ELSE coalesce(json_agg(c.id), '[]')::text END
    FROM (SELECT u.id FROM users u WHERE u.workspace_id = workspace AND u.changed >= since LIMIT 1001) c
$$;

CREATE FUNCTION team_info(workspace text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, json_build_object('team', json_build_object(
        'id', w.id, 'name', w.name, 'domain', w.domain, 'url', current_setting('tidings.url', true) || '/', 'email_domain', '',
        'icon', json_build_object('image_default', true)))::text
    FROM workspaces w WHERE w.id = workspace
$$;

CREATE FUNCTION bots_info(workspace text, bot text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN u.id IS NULL THEN 'bot_not_found' END, CASE WHEN u.id IS NOT NULL THEN json_build_object('bot', bot_object(u))::text END
    FROM (SELECT 1) one LEFT JOIN users u ON u.workspace_id = workspace AND u.bot_id IS NOT NULL AND u.bot_id = bot
$$;

CREATE FUNCTION dnd_team_info(workspace text, targets text[]) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, jsonb_build_object('users', coalesce(jsonb_object_agg(u.id, dnd_reply(notification_settings_of(u.id), false)), '{}'))::text
    FROM users u WHERE u.workspace_id = workspace AND u.id = ANY (targets)
$$;

CREATE FUNCTION emoji_list(workspace text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, json_build_object('emoji', coalesce(json_object_agg(e.name, coalesce('alias:' || e.alias_for, e.url) ORDER BY e.name), '{}'),
                                         'cache_ts', ts_text(coalesce(max(e.added), 0)))::text
    FROM emoji e WHERE e.workspace_id = workspace
$$;

-- `changed`: the members of the frame emoji_changed.
CREATE FUNCTION emoji_add(workspace text, caller text, emoji_name text, emoji_url text, of_name text, most integer)
RETURNS TABLE (error text, reply text, changed text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM workspaces w WHERE w.id = workspace FOR NO KEY UPDATE; -- so that the limit holds
    IF of_name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM emoji e WHERE e.workspace_id = workspace AND e.name = of_name AND e.alias_for IS NULL) THEN
        RETURN QUERY SELECT 'emoji_not_found', NULL::text, NULL::text;
        RETURN;
    END IF;
    IF (SELECT count(*) FROM emoji e WHERE e.workspace_id = workspace) >= most THEN
        RETURN QUERY SELECT 'emoji_limit_reached', NULL::text, NULL::text;
        RETURN;
    END IF;
    INSERT INTO emoji (workspace_id, name, url, alias_for, added_by, added) VALUES (workspace, emoji_name, emoji_url, of_name, caller, clock_us())
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'name_taken', NULL::text, NULL::text;
        RETURN;
    END IF;
    RETURN QUERY SELECT NULL::text, '{}'::text, json_build_object('subtype', 'add', 'name', emoji_name,
                                                                  'value', coalesce('alias:' || of_name, emoji_url))::text;
END $$;

-- With the aliases for it.
CREATE FUNCTION emoji_remove(workspace text, emoji_name text) RETURNS TABLE (error text, reply text, changed text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    removed text[];
BEGIN
    PERFORM 1 FROM workspaces w WHERE w.id = workspace FOR NO KEY UPDATE;
    WITH gone AS (DELETE FROM emoji e WHERE e.workspace_id = workspace AND (e.name = emoji_name OR e.alias_for = emoji_name) RETURNING e.name)
    SELECT array_agg(g.name ORDER BY g.name) INTO removed FROM gone g;
    RETURN QUERY SELECT CASE WHEN removed IS NULL THEN 'emoji_not_found' END, CASE WHEN removed IS NOT NULL THEN '{}' END,
                        CASE WHEN removed IS NOT NULL THEN json_build_object('subtype', 'remove', 'names', removed)::text END;
END $$;
