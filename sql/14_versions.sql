-- SPDX-License-Identifier: Apache-2.0
-- Versions of Tidings side by side. Each has its functions and views in a schema of its own, which comes first in the search_path of its
-- connections. The tables are in another schema, as are the functions of release 0.1.0.

CREATE FUNCTION tables_schema() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT c.relnamespace::regnamespace::text FROM pg_class c WHERE c.oid = 'schema_migrations'::regclass
$$;

-- Records that an instance of this version runs, or is about to. No row: its functions are not installed.
CREATE FUNCTION version_use(own_functions text, own_library text, own_release text) RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
    INSERT INTO versions_in_use AS v (functions, library, release, knows_hot)
    SELECT own_functions, own_library, own_release, true WHERE to_regnamespace(own_functions) IS NOT NULL
    ON CONFLICT (functions, library) DO UPDATE SET used_at = now(), release = excluded.release
    RETURNING v.functions
$$;

-- The functions of release 0.1.0, with digests of their arguments and bodies.
CREATE FUNCTION functions_of_0_1_0() RETURNS TABLE (name text, arguments text, body text) LANGUAGE sql IMMUTABLE AS $$
    VALUES
    ('app_events_add', 'dede947e', 'ad7ee8ce'), ('app_events_clean', '0fbcbcd2', 'eb756693'),
    ('app_events_settle', 'f12833d6', '4db23146'), ('app_events_take', '6200321d', '6316b132'), ('app_linked', 'cd8ed710', '61e0c947'),
    ('app_workspaces', 'd41d8cd9', 'dbefcd4c'), ('apps_create', '5d55160b', '0cc55da3'), ('apps_delete', '509091a4', 'e49ba88b'),
    ('change_note', 'e41845c9', 'ad9a6c79'), ('channel_advance', '96916dfe', '62dfc866'),
    ('channel_change_lock', 'b665419e', 'd4eef427'), ('channel_events', '4ee63a9c', 'e8051d82'),
    ('channel_lock', '9740b6e2', '244b754e'), ('channel_named', '6dce341e', '503a2a1d'), ('channel_notice', 'e580f54a', '944c3fc7'),
    ('channel_object', '33b25919', '395c006a'), ('channel_refusal', 'afe87325', '8832fb2f'),
    ('channel_seq_below', '2155714c', 'dcbbb456'), ('channels_archive', 'f650d05b', '48b91674'),
    ('channels_create', '2e581d6d', 'd8aa8318'), ('channels_invite', 'e4f95bf8', 'dd88b187'), ('channels_join', '7598ab43', 'bb880671'),
    ('channels_join_by_name', '7ffd4049', '18a5a0e8'), ('channels_kick', '9fae2bcf', '254b25d5'),
    ('channels_leave', '7598ab43', '58439344'), ('channels_list', 'ad27cd6c', 'd3424dab'), ('channels_members', 'bf2d875a', 'c683f50d'),
    ('channels_rename', 'be7de314', 'abcab941'), ('channels_set', 'f583a4e5', '5c5e4b15'),
    ('channels_set_notifications', '8fda909d', '172b5d17'), ('channels_set_strategy', '4f4b260a', '79380695'),
    ('clock_us', 'd41d8cd9', '4061a45b'), ('conversation_object', '72a81a98', 'e88564ef'), ('cursor_before', 'cfb00b75', '98c66dbb'),
    ('deleted_after', '628776f9', 'f724a3f9'), ('direct_channel_refusal', 'afe87325', 'abb25590'),
    ('direct_close', 'afe87325', '9a1c7845'), ('direct_make', '6446895c', '0e257a03'), ('direct_member_add', 'b58e5665', 'bfcef4eb'),
    ('direct_object', 'e3ade083', '9d70e168'), ('direct_open', 'fc2a6c38', 'a00e5bcf'), ('direct_open_channel', '0617ffbd', '0232c990'),
    ('direct_peer', 'c448b97f', '224ba313'), ('direct_refusal', '3436727f', 'fe9582b5'), ('direct_show', '1cab65d6', '56183fe8'),
    ('envelope_id', 'f235cafd', 'f9cda244'), ('ephemeral_check', 'ecb11e1f', '7619b72a'), ('eras_begin', 'd41d8cd9', '8a521be7'),
    ('extra_merge', '36615885', '424f6ba2'), ('extra_shown', '49e08096', 'a76ec245'), ('extra_shows', '25d2cd51', '284103b8'),
    ('housekeeping', 'b572ae7d', 'f3cc33a3'), ('is_personal', '3ecf22e0', 'b0f6e933'), ('is_read_singly', '4cc40a8b', 'a781c1c2'),
    ('kind_of_subtype', '51f53fd0', '77f69875'), ('link_events_ack', 'cf18311f', '780170a9'),
    ('link_events_return', 'b838e1f6', 'e30dcae4'), ('link_events_take', 'fa92deb0', '9e7fb417'), ('mark_all', '3bce2de1', 'ee2a3724'),
    ('mark_batch', '78f85d10', '424a7ddd'), ('mark_messages', '55d3d369', '225780e1'), ('mark_unread', 'ec5cab76', '2e4e734d'),
    ('member_remove', '0c635b31', '9c051c71'), ('members_add', '28f53c96', 'ef8d2edb'), ('members_lock', 'a4f24cb1', 'cf8604a1'),
    ('mentions_add', 'b31fa582', 'e91e4091'), ('mentions_after', '8defbf09', '148f4e13'), ('mentions_replace', 'a55d5f81', '0961b26d'),
    ('message_body', 'ecc2c70b', '64bb25ab'), ('message_delete', '86c44c83', '7d24dd62'), ('message_lock', 'd5ee6e30', '72282c14'),
    ('message_partition_make', '35a05f73', '409d90e0'), ('message_partitions_make', 'd41d8cd9', 'd026055e'),
    ('message_ts_at_seq', '13baadd2', 'b245affa'), ('message_update', '04ab822f', '3f78b445'),
    ('messages_expire', '16014883', '76b3d334'), ('messages_lock_try', 'd41d8cd9', '317e41b4'), ('outbox_add', '49a9b249', 'a70a3d28'),
    ('outbox_delete', '41631e3f', 'ed52e753'), ('outbox_entries', 'a6dbc436', '2dd532e6'), ('outbox_events', '41631e3f', 'b2f505ad'),
    ('outbox_leftovers', '9b749802', 'd794ed08'), ('outbox_put', '3c70ed9b', 'd51a6dbc'), ('post_batch', '837a1bb5', 'cb8e1ca0'),
    ('post_batch_find', 'bd2596aa', 'b8015972'), ('post_check', 'db79d68b', '41b1d74b'), ('post_one', 'b7acc7c8', '6ee8053a'),
    ('preview', 'bb7d8b15', '215a1d7d'), ('reply_users_max', 'd41d8cd9', 'b4b2127a'), ('resume_seq', 'e654c55e', '23d2d70d'),
    ('rtm_lists', 'd5b04b13', 'bd318400'), ('setting_object', 'ebb08930', 'e2c9241b'), ('singles_pass', '34d0f9c6', '09210dc4'),
    ('singles_standing', '82819716', '0c3636df'), ('strategies_auto', '5f880b29', '7c831406'), ('strategy_name', 'bc6fb149', 'c5752641'),
    ('strategy_pick', '888f4974', 'd2913223'), ('strategy_use', '47e83d81', 'edd9c3a3'), ('sync_candidates', '1c5bb41b', '6c798181'),
    ('thread_event', '8e57df5e', 'c38c53be'), ('thread_exists', '68f7f59d', '43cf5366'), ('thread_refusal', '3dd9d5c5', 'd43e914e'),
    ('thread_reply_deleted', '908e56ef', '30004f8b'), ('thread_root', 'df65f807', '764cba10'), ('thread_state', '98567239', '990e06bf'),
    ('thread_totals', '16df7301', 'f46d0207'), ('threads_follow', 'b7d1e47e', 'fc887483'), ('threads_leave', 'e41845c9', '3ac929a1'),
    ('threads_list', 'bf79d258', 'edbd5b96'), ('threads_mark', 'd59a0c4d', 'e9e0b198'), ('threads_mark_all', '7e6adb06', '8cd0e602'),
    ('threads_mention', '336b0bf4', '44cfc0ef'), ('threads_reply', 'bd2596aa', '6752efa9'), ('threads_tell', 'f952b972', '93b7de60'),
    ('threads_unfollow', 'b7d1e47e', '3baef6d5'), ('tokens_create', '099f6e18', 'a884be94'), ('tokens_list', '0b93d750', 'f32971dc'),
    ('tokens_revoke', '9714c920', '8fe5e13d'), ('ts_text', '779ecb12', '89258389'), ('user_object', 'af88f6a1', '618949f6'),
    ('user_reply', 'af88f6a1', 'b1a000a0'), ('user_reply', 'b3bc3130', '2f9e7302'), ('users_conversations', '962066b2', '98293c47'),
    ('users_create', 'd902b859', '56a865f4'), ('users_set_active', 'ef8b8c0a', 'd366c403'),
    ('workspaces_create', 'c65894ef', '143205f5'), ('xmin_is_below', '70dcbfed', '20009e5a')
$$;

-- The functions of release 0.1.0 that are missing or have been changed here: its instances may fail.
CREATE FUNCTION functions_of_0_1_0_differing() RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT f.name FROM functions_of_0_1_0() f
    WHERE NOT EXISTS (SELECT 1 FROM pg_proc p WHERE p.pronamespace = tables_schema()::regnamespace AND p.proname = f.name
                      AND left(md5(pg_get_function_identity_arguments(p.oid)), 8) = f.arguments AND left(md5(p.prosrc), 8) = f.body)
    ORDER BY 1
$$;

-- Drops the functions and views of release 0.1.0, whatever their bodies. They depend on each other, so each pass drops those that nothing
-- depends on any more.
CREATE FUNCTION functions_of_0_1_0_drop() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    left_over text[] := ARRAY(
        SELECT 'FUNCTION ' || p.oid::regprocedure FROM pg_proc p JOIN functions_of_0_1_0() f
            ON f.name = p.proname AND f.arguments = left(md5(pg_get_function_identity_arguments(p.oid)), 8)
        WHERE p.pronamespace = tables_schema()::regnamespace
        UNION ALL
        SELECT format('VIEW %I.%I', tables_schema(), c.relname) FROM pg_class c
        WHERE c.relnamespace = tables_schema()::regnamespace AND c.relkind = 'v'
          AND c.relname IN ('message_rows', 'unread_rows', 'mark_answers', 'thread_rows'));
    needed text[];
    object text;
BEGIN
    LOOP
        needed := '{}';
        FOREACH object IN ARRAY left_over LOOP
            BEGIN
                EXECUTE 'DROP ' || object;
            EXCEPTION WHEN dependent_objects_still_exist THEN
                needed := needed || object;
            END;
        END LOOP;
        EXIT WHEN cardinality(needed) = cardinality(left_over); -- all dropped, or the rest is in use by other objects
        left_over := needed;
    END LOOP;
END $$;

-- Drops the functions of a version, unless somebody created a table in its schema.
CREATE FUNCTION version_drop(dropped text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF dropped = tables_schema() THEN
        PERFORM functions_of_0_1_0_drop();
    ELSIF EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = to_regnamespace(dropped) AND c.relkind NOT IN ('v', 'c')) THEN
        RAISE WARNING 'schema % is not dropped: there is a table in it', dropped;
    ELSE
        EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', dropped);
    END IF;
END $$;

-- Drops the functions of versions of which no instance has run for `keep_s`, except the caller's own and those of the newest version, whose
-- instances may be about to start. Release 0.1.0 does not record that it runs, so its connections are looked for.
CREATE FUNCTION versions_drop(own_functions text, keep_s bigint) RETURNS SETOF text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    unused text;
BEGIN
    UPDATE versions_in_use v SET used_at = now()
    WHERE v.functions = tables_schema() AND EXISTS (
        SELECT 1 FROM pg_stat_activity a WHERE a.datname = current_database() AND a.application_name = 'tidings');
    FOR unused IN
        SELECT v.functions FROM versions_in_use v WHERE v.functions <> own_functions GROUP BY v.functions
        HAVING max(v.used_at) < now() - keep_s * interval '1 second' AND clock_hold_us() = 0
           AND max(v.made_at) < (SELECT max(y.made_at) FROM versions_in_use y)
    LOOP
        DELETE FROM versions_in_use v WHERE v.functions = unused AND v.used_at < now() - keep_s * interval '1 second';
        IF NOT EXISTS (SELECT 1 FROM versions_in_use v WHERE v.functions = unused) THEN -- an instance that is starting holds the lock of its row
            PERFORM version_drop(unused);
            RETURN NEXT unused;
        END IF;
    END LOOP;
END $$;

-- The Redis libraries that remaining versions may use.
CREATE FUNCTION libraries_in_use() RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT DISTINCT v.library FROM versions_in_use v $$;
