-- SPDX-License-Identifier: Apache-2.0
-- Files: uploading, sharing, reading and removing them. A file is announced, uploaded, completed, and then shared by posts.

-- Whether a user may read a file: its owner, and the members of a channel where it is shared.
CREATE FUNCTION file_is_visible(f files, caller text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT f.is_complete AND NOT f.is_deleted AND (f.user_id = caller OR EXISTS (
        SELECT 1 FROM file_shares s JOIN channel_members m ON m.channel_id = s.channel_id AND m.user_id = caller AND m.active
        WHERE s.file_id = f.id))
$$;

-- `base`: the URL of the service, with a slash at its end.
CREATE FUNCTION file_object(f files, base text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'id', f.id, 'created', f.created, 'timestamp', f.created, 'name', f.name, 'title', f.title, 'alt_txt', f.alt_txt, 'mimetype', f.mimetype,
        'filetype', f.filetype, 'pretty_type', upper(f.filetype), 'user', f.user_id, 'user_team', f.workspace_id, 'editable', false,
        'size', f.size, 'mode', 'hosted', 'is_external', false, 'external_type', '', 'public_url_shared', false, 'display_as_bot', false,
        'username', '', 'url_private', base || 'files-pri/' || u.path, 'permalink', base || 'files-pri/' || u.path,
        'url_private_download', base || 'files-pri/' || f.workspace_id || '-' || f.id || '/download/' || u.name,
        'comments_count', 0, 'is_starred', false, 'has_rich_preview', false, 'file_access', 'visible'))
    FROM (SELECT n.name, f.workspace_id || '-' || f.id || '/' || n.name AS path
          FROM (SELECT regexp_replace(f.name, '[^A-Za-z0-9._-]+', '_', 'g') AS name) n) u
$$;

-- With the places where the caller can see it.
CREATE FUNCTION file_shown(f files, caller text, base text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT file_object(f, base) || jsonb_build_object(
        'is_public', coalesce(bool_or(c.type = 0), false),
        'channels', coalesce(jsonb_agg(DISTINCT c.id) FILTER (WHERE c.type = 0), '[]'),
        'groups', coalesce(jsonb_agg(DISTINCT c.id) FILTER (WHERE c.type IN (1, 2)), '[]'),
        'ims', coalesce(jsonb_agg(DISTINCT c.id) FILTER (WHERE c.type = 3), '[]'),
        'shares', jsonb_strip_nulls(jsonb_build_object(
            'public', jsonb_object_agg(c.id, jsonb_build_array(jsonb_build_object('ts', ts_text(s.ts)))) FILTER (WHERE c.type = 0),
            'private', jsonb_object_agg(c.id, jsonb_build_array(jsonb_build_object('ts', ts_text(s.ts)))) FILTER (WHERE c.type > 0))))
    FROM file_shares s JOIN channels c ON c.id = s.channel_id
    JOIN channel_members m ON m.channel_id = c.id AND m.user_id = caller AND m.active
    WHERE s.file_id = f.id
$$;

-- Announces a file. `user_max`: bytes of all files of a user. The user's row serialises what counts them.
CREATE FUNCTION files_announce(workspace text, caller text, new_id text, digest text, new_name text, new_title text, alt text, length bigint,
                               user_max bigint) RETURNS TABLE (error text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM 1 FROM users u WHERE u.id = caller FOR NO KEY UPDATE;
    IF (SELECT coalesce(sum(f.size), 0) FROM files f WHERE f.user_id = caller AND NOT f.is_deleted) + length > user_max THEN
        RETURN QUERY SELECT 'storage_limit_reached';
        RETURN;
    END IF;
    INSERT INTO files (id, workspace_id, user_id, name, title, alt_txt, size, upload_digest)
    VALUES (new_id, workspace, caller, new_name, new_title, alt, length, digest);
    RETURN QUERY SELECT NULL::text;
END $$;

-- The file whose upload URL has this secret, if it still waits for its bytes. They will be in `new_object`.
CREATE FUNCTION files_upload_begin(digest text, new_object text, keep_s bigint) RETURNS TABLE (id text, size bigint, user_id text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
    WITH found AS (
        SELECT f.id, f.size, f.user_id FROM files f JOIN users u ON u.id = f.user_id AND u.active
        WHERE f.upload_digest = digest AND NOT f.is_complete AND NOT f.is_deleted AND f.created > extract(epoch FROM now())::bigint - keep_s
    ), noted AS (INSERT INTO file_objects (object, file_id) SELECT new_object, f.id FROM found f)
    SELECT * FROM found;
END $$;

-- The bytes are stored. False: too late, it was completed or removed meanwhile.
CREATE FUNCTION files_upload_end(file text, new_object text, mime text, kind text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE files f SET object = new_object, mimetype = mime, filetype = kind
    WHERE f.id = file AND NOT f.is_complete AND NOT f.is_deleted
      AND EXISTS (SELECT 1 FROM file_objects o WHERE o.object = new_object);
    RETURN FOUND;
END $$;

-- Completes uploads of the caller. Again: changes nothing. `titles`: NULL leaves one as it is.
CREATE FUNCTION files_complete(workspace text, caller text, ids text[], titles text[], base text) RETURNS TABLE (error text, reply text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    good bigint;
BEGIN
    SELECT count(*) INTO good FROM (SELECT 1 FROM files f WHERE f.id = ANY (ids) AND f.workspace_id = workspace AND f.user_id = caller
                                    AND f.object IS NOT NULL AND NOT f.is_deleted ORDER BY f.id FOR NO KEY UPDATE) l;
    IF good <> cardinality(ids) THEN
        RETURN QUERY SELECT 'file_not_found', NULL::text;
        RETURN;
    END IF;
    UPDATE files f SET is_complete = true, upload_digest = NULL, title = coalesce(t.title, f.title)
    FROM unnest(ids, titles) AS t (id, title) WHERE f.id = t.id AND NOT f.is_complete;
    RETURN QUERY SELECT NULL::text, (SELECT jsonb_agg(file_object(f, base) ORDER BY t.n)::text
                                     FROM unnest(ids) WITH ORDINALITY AS t (id, n) JOIN files f ON f.id = t.id);
END $$;

CREATE FUNCTION files_info(workspace text, caller text, file text, base text) RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN f.id IS NULL THEN 'file_not_found' END,
           CASE WHEN f.id IS NOT NULL THEN json_build_object('file', file_shown(f, caller, base), 'comments', '[]'::json)::text END
    FROM (SELECT 1) one LEFT JOIN files f ON f.id = file AND (f.workspace_id = workspace AND file_is_visible(f, caller)) IS TRUE
$$;

-- The newest first: `count` of page `page`. `channel`, `owner`: NULL for all.
CREATE FUNCTION files_list(workspace text, caller text, channel text, owner text, since bigint, until bigint, count bigint, page bigint, base text)
RETURNS TABLE (error text, reply text) LANGUAGE sql STABLE AS $$
    WITH mine AS (
        SELECT f FROM files f WHERE f.user_id = caller
        UNION SELECT f FROM channel_members m JOIN file_shares s ON s.channel_id = m.channel_id JOIN files f ON f.id = s.file_id
        WHERE m.user_id = caller AND m.active
    ), found AS (
        SELECT m.f, row_number() OVER (ORDER BY (m.f).created DESC, (m.f).id DESC) AS n, count(*) OVER () AS total FROM mine m
        WHERE (m.f).workspace_id = workspace AND (m.f).is_complete AND NOT (m.f).is_deleted AND (owner IS NULL OR (m.f).user_id = owner)
          AND (m.f).created BETWEEN since AND until
          AND (channel IS NULL OR EXISTS (SELECT 1 FROM file_shares s JOIN channel_members c ON c.channel_id = s.channel_id AND c.user_id = caller
                                          AND c.active WHERE s.file_id = (m.f).id AND s.channel_id = channel))
    )
    SELECT NULL::text, json_build_object(
        'files', coalesce((SELECT json_agg(file_shown(d.f, caller, base) ORDER BY d.n) FROM found d
                           WHERE d.n > (page - 1) * files_list.count AND d.n <= page * files_list.count), '[]'::json),
        'paging', json_build_object('count', files_list.count, 'total', t.total, 'page', page,
                                    'pages', (t.total + files_list.count - 1) / files_list.count))::text
    FROM (SELECT coalesce(max(d.total), 0) AS total FROM found d) t
$$;

-- Its messages stay.
CREATE FUNCTION files_delete(workspace text, caller text, is_admin boolean, file text) RETURNS TABLE (error text, reply text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found files;
BEGIN
    SELECT * INTO found FROM files f WHERE f.id = file AND (f.workspace_id = workspace) IS TRUE FOR NO KEY UPDATE;
    IF found.id IS NULL OR NOT file_is_visible(found, caller) THEN
        RETURN QUERY SELECT 'file_not_found', NULL::text;
    ELSIF found.user_id <> caller AND NOT is_admin THEN
        RETURN QUERY SELECT 'cant_delete_file', NULL::text;
    ELSE
        UPDATE files f SET is_deleted = true WHERE f.id = file;
        RETURN QUERY SELECT NULL::text, '{}'::text;
    END IF;
END $$;

CREATE FUNCTION files_sign(workspace text, caller text, file text, digest text, for_s bigint) RETURNS TABLE (error text, reply text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    INSERT INTO file_grants (digest, file_id, user_id, expires_at)
    SELECT files_sign.digest, f.id, caller, now() + for_s * interval '1 second'
    FROM files f WHERE f.id = file AND (f.workspace_id = workspace AND file_is_visible(f, caller)) IS TRUE;
    RETURN QUERY SELECT CASE WHEN NOT FOUND THEN 'file_not_found' END,
                        json_build_object('expires_at', extract(epoch FROM now())::bigint + for_s)::text;
END $$;

-- What a download needs; no row: there is no such file for the caller. With a secret of files_sign() its user is the caller.
CREATE FUNCTION files_open(workspace text, caller text, file text, digest text) RETURNS TABLE (object text, name text, mimetype text, size bigint)
LANGUAGE sql STABLE AS $$
    SELECT f.object, f.name, f.mimetype, f.size
    FROM files f WHERE f.id = file AND f.workspace_id = workspace AND file_is_visible(f, caller)
    UNION ALL
    SELECT f.object, f.name, f.mimetype, f.size
    FROM file_grants g JOIN users u ON u.id = g.user_id AND u.active JOIN files f ON f.id = g.file_id AND file_is_visible(f, g.user_id)
    WHERE g.digest = files_open.digest AND g.expires_at > now()
$$;

-- Removes the shares of a message that is gone; a file whose last share that was is deleted. The caller holds the channel's row lock, or
-- nobody can see the message any more.
CREATE FUNCTION file_shares_end(channel text, message_ts bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone text[];
BEGIN
    WITH d AS (DELETE FROM file_shares s WHERE s.channel_id = channel AND s.ts = message_ts RETURNING s.file_id)
    SELECT array_agg(d.file_id) INTO gone FROM d;
    IF gone IS NOT NULL THEN
        PERFORM 1 FROM files f WHERE f.id = ANY (gone) ORDER BY f.id FOR NO KEY UPDATE;
        UPDATE files f SET is_deleted = true WHERE f.id = ANY (gone) AND NOT EXISTS (SELECT 1 FROM file_shares s WHERE s.file_id = f.id);
    END IF;
END $$;

-- Ends what nobody finished within `keep_s` seconds, the shares of messages that retention has dropped, and grants. Returns objects that no
-- file needs, at most `count`: files_swept() forgets those that have been removed.
CREATE FUNCTION files_sweep(keep_s bigint, kept_days bigint, count bigint) RETURNS TABLE (object text) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM file_grants g WHERE g.expires_at < now();
    UPDATE files f SET is_deleted = true, upload_digest = NULL WHERE f.id IN (
        SELECT x.id FROM files x WHERE NOT x.is_complete AND NOT x.is_deleted AND x.created < extract(epoch FROM now())::bigint - keep_s
        ORDER BY x.id LIMIT files_sweep.count FOR NO KEY UPDATE SKIP LOCKED);
    PERFORM file_shares_end(s.channel_id, s.ts) FROM (
        SELECT DISTINCT s.channel_id, s.ts FROM file_shares s
        WHERE s.ts < (extract(epoch FROM now() - make_interval(days => kept_days::integer)) * 1000000)::bigint
          AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.channel_id = s.channel_id AND m.ts = s.ts AND NOT m.deleted)
        ORDER BY s.channel_id, s.ts LIMIT files_sweep.count) s;
    RETURN QUERY
    SELECT o.object FROM file_objects o LEFT JOIN files f ON f.id = o.file_id
    WHERE f.id IS NULL OR f.is_deleted OR (f.object IS DISTINCT FROM o.object AND o.created < now() - keep_s * interval '1 second')
    LIMIT files_sweep.count;
END $$;

CREATE FUNCTION files_swept(objects text[]) RETURNS void LANGUAGE sql VOLATILE AS $$
    DELETE FROM file_objects o WHERE o.object = ANY (objects);
    DELETE FROM files f WHERE f.is_deleted AND f.created < extract(epoch FROM now())::bigint - 86400
        AND NOT EXISTS (SELECT 1 FROM file_objects o WHERE o.file_id = f.id)
        AND f.id IN (SELECT x.id FROM files x WHERE x.is_deleted LIMIT 1000)
$$;
