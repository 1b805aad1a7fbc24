-- SPDX-License-Identifier: Apache-2.0
-- Messages that are written while others read along: chat.startStream, appendStream, stopStream.

-- Why `caller` may not go on with the message; NULL: they may. `message` is then set.
CREATE FUNCTION stream_refusal(workspace text, caller text, channel text, message_ts bigint, OUT error text, OUT message messages)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    error := channel_refusal(workspace, caller, channel);
    IF error IS NULL THEN
        SELECT * INTO message FROM messages m WHERE m.channel_id = channel AND m.ts = message_ts;
        error := CASE WHEN message.ts IS NULL OR message.deleted THEN 'message_not_found'
                      WHEN message.user_id <> caller THEN 'message_not_owned_by_app'
                      WHEN message.extra::jsonb ->> 'streaming_state' IS DISTINCT FROM 'in_progress' THEN 'message_not_in_streaming_state' END;
    END IF;
END $$;

-- Appends to the message. `frame`: what is to be told now; NULL: nothing, since the last frame was less than 100 ms ago.
CREATE FUNCTION stream_append(workspace text, caller text, channel text, message_ts bigint, chunk text, start_text text, most integer)
RETURNS TABLE (error text, reply text, frame text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
    start text;
    s streams;
BEGIN
    SELECT * INTO found FROM stream_refusal(workspace, caller, channel, message_ts);
    IF found.error IS NOT NULL THEN
        RETURN QUERY SELECT found.error, NULL::text, NULL::text;
        RETURN;
    END IF;
    start := CASE WHEN (found.message).body = start_text THEN '' ELSE (found.message).body END;
    INSERT INTO streams AS o (channel_id, ts, body, told, told_at) VALUES (channel, message_ts, start || chunk, length(start), '-infinity')
    ON CONFLICT (channel_id, ts) DO UPDATE SET body = o.body || chunk RETURNING * INTO s;
    IF length(s.body) > most THEN
        RAISE EXCEPTION USING ERRCODE = 'TD004'; -- takes it back
    END IF;
    IF s.told_at > clock_timestamp() - interval '100 milliseconds' THEN
        RETURN QUERY SELECT NULL::text, '{}'::text, NULL::text;
        RETURN;
    END IF;
    UPDATE streams o SET told = length(s.body), told_at = clock_timestamp() WHERE o.channel_id = channel AND o.ts = message_ts;
    RETURN QUERY SELECT NULL::text, '{}'::text, json_build_object(
        'type', 'message_stream', 'channel', channel, 'user', caller, 'ts', ts_text(message_ts),
        'thread_ts', ts_text(coalesce((found.message).thread_ts, message_ts)), 'offset', s.told, 'text', substr(s.body, s.told + 1))::text;
EXCEPTION WHEN SQLSTATE 'TD004' THEN
    RETURN QUERY SELECT 'msg_too_long', NULL::text, NULL::text;
END $$;

-- All of the text so far.
CREATE FUNCTION stream_text(workspace text, caller text, channel text, message_ts bigint, start_text text) RETURNS TABLE (error text, body text)
LANGUAGE sql STABLE AS $$
    SELECT r.error, coalesce(s.body, CASE WHEN (r.message).body = start_text THEN '' ELSE (r.message).body END)
    FROM stream_refusal(workspace, caller, channel, message_ts) r
    LEFT JOIN streams s ON s.channel_id = channel AND s.ts = message_ts
$$;

-- Ends the message, and those that nobody has ended for an hour.
CREATE FUNCTION stream_end(channel text, message_ts bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
    DELETE FROM streams s WHERE (s.channel_id, s.ts) IN (
        SELECT channel, message_ts UNION ALL
        (SELECT o.channel_id, o.ts FROM streams o WHERE o.told_at < now() - interval '1 hour' ORDER BY o.told_at LIMIT 100))
$$;
