// SPDX-License-Identifier: Apache-2.0
// All methods by family. A method's function is in its family's file, under the method's name.
#pragma once

#include "invocation.h"

// auth.c
method_fn api_test, auth_test, auth_revoke;
// reactions.c, pins.c
method_fn reactions_add, reactions_remove, reactions_get, reactions_list, pins_add, pins_remove,
    pins_list;
// auth_exchange.c
method_fn auth_exchange;
// rtm.c
method_fn rtm_connect, rtm_start, apps_connections_open;
// chat_post.c, chat_change.c
method_fn chat_post_message, chat_me_message, chat_start_stream, chat_update, chat_delete;
// streams.c
method_fn chat_append_stream, chat_stop_stream, assistant_threads_set_status;
// chat_ephemeral.c
method_fn chat_get_permalink, chat_post_ephemeral;
// channels.c
method_fn channels_create, channels_list, channels_members, channels_join, channels_leave,
    channels_invite, channels_kick, channels_archive, channels_unarchive, channels_set_strategy;
// channel_settings.c
method_fn channels_set_topic, channels_set_purpose, channels_rename;
// direct.c
method_fn channels_open, channels_close;
// history.c
method_fn channels_history, channels_replies, channels_events;
// events_sync.c
method_fn events_sync;
// channel_info.c
method_fn channels_info;
// read_state.c
method_fn channels_mark, channels_mark_unread, channels_mark_messages;
// mark_all.c, mark_many.c
method_fn channels_mark_all, channels_mark_many;
// notifications.c
method_fn channels_set_notifications;
// threads.c
method_fn threads_mark, threads_follow, threads_unfollow, threads_list;
// unread_sync.c
method_fn unread_sync, client_counts;
// users_presence.c
method_fn users_get_presence, users_set_presence;
// profiles.c
method_fn users_profile_get, users_profile_set, users_lookup_by_email, users_search, users_identity,
    users_prefs_get, admin_users_update;
// team.c
method_fn team_info, bots_info, usergroups_list, emoji_list, admin_emoji_add, admin_emoji_remove;
// people.c
method_fn users_info, users_list, users_conversations;
// admin.c
method_fn admin_workspaces_create, admin_users_create, admin_users_set_active,
    admin_users_revoke_tokens, admin_tokens_create, admin_tokens_revoke, admin_tokens_list,
    admin_apps_create, admin_apps_delete;
// push_apps.c
method_fn admin_push_apps_create, admin_push_apps_list, admin_push_apps_update,
    admin_push_apps_delete;

// chat_post.c: posts the arguments channel, text, thread_ts and blocks with files, and replies with
// these. All must be valid until the invocation ends.
struct shared_files {
    const char *objects; // a JSON array
    const char *ids;     // "F1,F2"
    const char *key;     // the same again is posted once
};
void shared_files_post(struct invocation *invocation, const struct shared_files *shared);
// files.c
method_fn files_get_upload_url_external, files_complete_upload_external, files_info, files_list,
    files_delete, files_sign;
// files_transfer.c
method_fn files_receive, files_send, files_send_signed;
// webhooks.c
method_fn admin_webhooks_create, admin_webhooks_list, admin_webhooks_delete, webhooks_post;
// auth_providers.c
method_fn admin_auth_providers_create, admin_auth_providers_list, admin_auth_providers_update,
    admin_auth_providers_delete;
// push_test.c
method_fn admin_push_test;
// devices.c
method_fn devices_register, devices_unregister, devices_list;
// user_notifications.c
method_fn notifications_get, notifications_set, dnd_info, dnd_team_info, dnd_set_snooze,
    dnd_end_snooze;
// admin_many.c
method_fn admin_users_list, admin_users_create_many, admin_channels_add_members;

// Finds a method by name or alias (conversations.*, groups.*, im.*, mpim.* for channels.*). NULL:
// none.
const struct method *method_find(const char *name);

// Its index among all methods, below METHODS_MAX.
size_t method_number(const struct method *method);
