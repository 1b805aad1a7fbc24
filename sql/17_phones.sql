-- SPDX-License-Identifier: Apache-2.0
-- Push apps (of phones and browsers), and the devices registered for them.

CREATE FUNCTION push_app_object(a push_apps) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_build_object('name', a.name, 'platform', a.platform, 'created', a.created) || a.fields
$$;

CREATE FUNCTION push_apps_create(workspace text, new_name text, new_platform text, new_fields text, new_secret text)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    made push_apps;
BEGIN
    INSERT INTO push_apps (workspace_id, name, platform, fields, secret) VALUES (workspace, new_name, new_platform, new_fields::jsonb, new_secret)
    ON CONFLICT DO NOTHING RETURNING * INTO made;
    RETURN QUERY SELECT CASE WHEN made.name IS NULL THEN 'name_taken' END,
        CASE WHEN made.name IS NOT NULL THEN jsonb_build_object('app', push_app_object(made))::text END;
END $$;

-- No row: there is no such app.
CREATE FUNCTION push_app_platform(workspace text, of_name text) RETURNS TABLE (platform text) LANGUAGE sql STABLE AS $$
    SELECT a.platform FROM push_apps a WHERE a.workspace_id = workspace AND a.name = of_name
$$;

-- Changes the given fields, and the secret unless it is NULL.
CREATE FUNCTION push_apps_update(workspace text, of_name text, of_platform text, new_fields text, new_secret text)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    changed push_apps;
BEGIN
    UPDATE push_apps a SET fields = a.fields || new_fields::jsonb, secret = coalesce(new_secret, a.secret)
    WHERE a.workspace_id = workspace AND a.name = of_name AND a.platform = of_platform RETURNING * INTO changed;
    RETURN QUERY SELECT CASE WHEN changed.name IS NULL THEN 'app_not_found' END,
        CASE WHEN changed.name IS NOT NULL THEN jsonb_build_object('app', push_app_object(changed))::text END;
END $$;

CREATE FUNCTION push_apps_list(workspace text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, jsonb_build_object('apps', coalesce(jsonb_agg(push_app_object(a) ORDER BY a.name), '[]'))::text
    FROM push_apps a WHERE a.workspace_id = workspace
$$;

-- Deletes the app's devices too.
CREATE FUNCTION push_apps_delete(workspace text, of_name text) RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM push_apps a WHERE a.workspace_id = workspace AND a.name = of_name FOR UPDATE;
    PERFORM FROM devices d WHERE d.workspace_id = workspace AND d.app = of_name ORDER BY d.user_id, d.app, d.device_id FOR UPDATE;
    DELETE FROM push_apps a WHERE a.workspace_id = workspace AND a.name = of_name;
    RETURN QUERY SELECT CASE WHEN NOT FOUND THEN 'app_not_found' END, '{}'::text;
END $$;

CREATE FUNCTION device_object(d devices, platform text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('device_id', d.device_id, 'app', d.app, 'platform', platform, 'locale', d.locale,
        'preview', d.preview, 'created', d.created, 'last_success', d.last_success, 'failing_since', d.failing_since))
$$;

-- Registers a device of the caller. It replaces the device with the same id, and those with the same token: a phone that changed hands.
-- `digests`: of the token; the first one is stored, the last one is by the oldest key.
CREATE FUNCTION devices_register(workspace text, caller text, to_app text, of_platform text, with_id text, new_address text, digests text[],
                                 new_locale text, new_preview text, device_max bigint)
RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
    made devices;
    is_other boolean;  -- the device had another address
    has_moved boolean; -- the address was another device's
BEGIN
    PERFORM FROM push_apps a WHERE a.workspace_id = workspace AND a.name = to_app AND a.platform = of_platform FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'app_not_found', NULL::text;
        RETURN;
    END IF;
    -- Serializes registrations of the same token, and those of the caller with changes of the caller's notification settings.
    PERFORM pg_advisory_xact_lock(hashtextextended(to_app || digests[cardinality(digests)], 0));
    PERFORM FROM users u WHERE u.id = caller FOR NO KEY UPDATE;
    PERFORM FROM devices d
    WHERE (d.workspace_id = workspace AND d.app = to_app AND d.digest = ANY (digests)) OR (d.user_id = caller AND d.app = to_app AND d.device_id = with_id)
    ORDER BY d.user_id, d.app, d.device_id FOR UPDATE;
    DELETE FROM devices d WHERE d.workspace_id = workspace AND d.app = to_app AND d.digest = ANY (digests)
        AND (d.user_id <> caller OR d.device_id <> with_id);
    has_moved := FOUND;
    IF (SELECT count(*) FROM devices d WHERE d.user_id = caller AND (d.app <> to_app OR d.device_id <> with_id)) >= device_max THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002'; -- rolls back, so a token that had moved stays with its old device
    END IF;
    SELECT d.digest <> ALL (digests) INTO is_other FROM devices d
    WHERE d.user_id = caller AND d.app = to_app AND d.device_id = with_id;
    INSERT INTO devices AS d (user_id, app, device_id, workspace_id, address, digest, locale, preview, hears_all)
    VALUES (caller, to_app, with_id, workspace, new_address, digests[1], new_locale, new_preview,
            notification_settings_hear_all(notification_settings_of(caller)))
    ON CONFLICT (user_id, app, device_id) DO UPDATE SET address = excluded.address, digest = excluded.digest, locale = excluded.locale,
        preview = excluded.preview, created = excluded.created, last_success = NULL, failing_since = NULL, hears_all = excluded.hears_all
    RETURNING * INTO made;
    PERFORM push_turns_add(ARRAY[caller]);
    UPDATE push_turns t SET tries = 0, badge = CASE WHEN NOT (is_other IS TRUE OR has_moved) THEN t.badge END,
        lease = CASE WHEN is_other THEN t.lease + 1 ELSE t.lease END, leased_at = CASE WHEN is_other IS NOT TRUE THEN t.leased_at END
    WHERE t.user_id = caller AND t.app = to_app AND t.device_id = with_id;
    PERFORM push_turns_touch(ARRAY[caller], 1000); -- by then each instance knows that the workspace has a device: push_workspace_met()
    RETURN QUERY SELECT NULL::text, jsonb_build_object('device', device_object(made, of_platform))::text;
EXCEPTION WHEN SQLSTATE 'TD002' THEN
    RETURN QUERY SELECT 'too_many_devices', NULL::text;
END $$;

-- `of_app` NULL: all apps.
CREATE FUNCTION devices_unregister(caller text, with_id text, of_app text) RETURNS TABLE (error text, reply text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM devices d WHERE d.user_id = caller AND d.device_id = with_id AND d.app = coalesce(of_app, d.app) ORDER BY d.app FOR UPDATE;
    DELETE FROM devices d WHERE d.user_id = caller AND d.device_id = with_id AND d.app = coalesce(of_app, d.app);
    RETURN QUERY SELECT CASE WHEN NOT FOUND THEN 'device_not_found' END, '{}'::text;
END $$;

-- What a client needs to register for an app, without the operator's details.
CREATE FUNCTION push_app_offer(a push_apps) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('name', a.name, 'platform', a.platform, 'public_key', a.fields -> 'public_key'))
$$;

-- The caller's devices, and the apps that they can register devices for.
CREATE FUNCTION devices_list(workspace text, caller text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, jsonb_build_object(
        'devices', (SELECT coalesce(jsonb_agg(device_object(d, a.platform) ORDER BY d.app, d.device_id), '[]')
                    FROM devices d JOIN push_apps a ON a.workspace_id = d.workspace_id AND a.name = d.app WHERE d.user_id = caller),
        'apps', (SELECT coalesce(jsonb_agg(push_app_offer(a) ORDER BY a.name), '[]') FROM push_apps a WHERE a.workspace_id = workspace))::text
$$;

-- What a push to a device needs. If devices of several apps have that id, the one registered last.
CREATE FUNCTION push_target(workspace text, of_user text, with_id text, of_app text)
RETURNS TABLE (error text, app text, platform text, fields text, secret text, address text, digest text, created bigint) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN u.id IS NULL THEN 'user_not_found' WHEN d.device_id IS NULL THEN 'device_not_found' END,
           a.name, a.platform, a.fields::text, a.secret, d.address, d.digest, d.created
    FROM (SELECT) one
    LEFT JOIN users u ON u.id = of_user AND u.workspace_id = workspace
    LEFT JOIN devices d ON d.user_id = u.id AND d.device_id = with_id AND d.app = coalesce(of_app, d.app)
    LEFT JOIN push_apps a ON a.workspace_id = d.workspace_id AND a.name = d.app
    ORDER BY d.created DESC, d.app LIMIT 1
$$;

-- Records the outcome of a push: deletes a device that is gone, else when the provider last took a push, or since when it has taken none.
-- Does nothing if another address was registered meanwhile.
CREATE FUNCTION push_settle(of_user text, of_app text, with_id text, of_digest text, outcome text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF outcome = 'gone' THEN
        DELETE FROM devices d WHERE d.user_id = of_user AND d.app = of_app AND d.device_id = with_id AND d.digest = of_digest;
        RETURN;
    END IF;
    UPDATE devices d SET
        last_success = CASE WHEN outcome = 'delivered' THEN extract(epoch FROM now())::bigint ELSE d.last_success END,
        failing_since = CASE WHEN outcome <> 'delivered' THEN coalesce(d.failing_since, extract(epoch FROM now())::bigint) END
    WHERE d.user_id = of_user AND d.app = of_app AND d.device_id = with_id AND d.digest = of_digest;
END $$;
