-- SPDX-License-Identifier: Apache-2.0
-- Incoming webhooks. Each has a bot of its own, a member of its channel, which posts like any other.

CREATE FUNCTION webhook_object(w webhooks) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    SELECT json_strip_nulls(json_build_object('id', w.id, 'channel', w.channel_id, 'name', w.name, 'icon_url', w.icon_url,
                                              'icon_emoji', w.icon_emoji, 'created', w.created))
$$;

-- For admins, who need not be members of the channel. `bot_name`: of the new user. `changed`: what other clients receive about it.
CREATE FUNCTION webhooks_create(outbox_id text, workspace text, caller text, channel text, new_id text, bot text, bot_name text,
                                path_digest text, shown_name text, shown_url text, shown_emoji text, webhooks_max bigint)
RETURNS TABLE (error text, reply text, told boolean, changed text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found channels;
    made webhooks;
BEGIN
    SELECT * INTO found FROM channels c WHERE c.id = channel AND (c.workspace_id = workspace) IS TRUE FOR NO KEY UPDATE;
    error := CASE WHEN found.id IS NULL THEN 'channel_not_found' WHEN found.people IS NOT NULL THEN 'method_not_supported_for_channel_type'
                  WHEN found.is_archived THEN 'is_archived'
                  WHEN (SELECT count(*) FROM webhooks w WHERE w.workspace_id = workspace) >= webhooks_max THEN 'too_many_webhooks' END;
    IF error IS NOT NULL THEN
        RETURN QUERY SELECT error, NULL::text, false, NULL::text;
        RETURN;
    END IF;
    INSERT INTO users (id, workspace_id, name, folded, folded_from, real_name, bot_id)
    VALUES (bot, workspace, bot_name, bot_name, bot_name, shown_name, new_id);
    INSERT INTO webhooks AS w (id, digest, workspace_id, user_id, channel_id, name, icon_url, icon_emoji)
    VALUES (new_id, path_digest, workspace, bot, channel, shown_name, shown_url, shown_emoji) RETURNING * INTO made;
    RETURN QUERY SELECT NULL::text, webhook_object(made)::text, members_add(outbox_id, channel, ARRAY[bot], caller),
                        user_change_object(u) FROM users u WHERE u.id = bot;
END $$;

CREATE FUNCTION webhooks_list(workspace text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT NULL::text, json_build_object('webhooks', coalesce(json_agg(webhook_object(w) ORDER BY w.created, w.id), '[]'::json))::text
    FROM webhooks w WHERE w.workspace_id = workspace
$$;

-- Its bot leaves the channel and becomes inactive; its messages stay.
CREATE FUNCTION webhooks_delete(outbox_id text, workspace text, webhook text)
RETURNS TABLE (error text, reply text, told boolean, changed text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone webhooks;
BEGIN
    PERFORM 1 FROM channels c WHERE c.id = (SELECT w.channel_id FROM webhooks w WHERE w.id = webhook AND (w.workspace_id = workspace) IS TRUE)
    FOR NO KEY UPDATE;
    DELETE FROM webhooks w WHERE w.id = webhook AND (w.workspace_id = workspace) IS TRUE RETURNING * INTO gone;
    IF gone.id IS NULL THEN
        RETURN QUERY SELECT 'webhook_not_found', NULL::text, false, NULL::text;
        RETURN;
    END IF;
    told := member_remove(outbox_id, gone.channel_id, gone.user_id);
    UPDATE users u SET active = false, updated = extract(epoch FROM now())::bigint WHERE u.id = gone.user_id
    RETURNING user_change_object(u) INTO changed;
    RETURN QUERY SELECT NULL::text, '{}'::text, told, changed;
END $$;
