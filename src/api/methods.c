// SPDX-License-Identifier: Apache-2.0
// The table of all methods: name, access, scope, function.
#include "methods.h"

#include "aliases.h"
#include "http/server.h"

#include <string.h>

static const struct method methods[] = {
    {"api.test", ACCESS_OPEN, NULL, api_test},
    {"auth.test", ACCESS_ANYONE, NULL, auth_test},
    {"auth.revoke", ACCESS_ANYONE, NULL, auth_revoke},
    {"auth.exchange", ACCESS_OPEN, NULL, auth_exchange},
    {"chat.postMessage", ACCESS_MEMBER, "chat:write", chat_post_message},
    {"chat.meMessage", ACCESS_MEMBER, "chat:write", chat_me_message},
    {"chat.startStream", ACCESS_MEMBER, "chat:write", chat_start_stream},
    {"chat.appendStream", ACCESS_MEMBER, "chat:write", chat_append_stream},
    {"chat.stopStream", ACCESS_MEMBER, "chat:write", chat_stop_stream},
    {"assistant.threads.setStatus", ACCESS_MEMBER, "chat:write", assistant_threads_set_status},
    {"chat.postEphemeral", ACCESS_MEMBER, "chat:write", chat_post_ephemeral},
    {"chat.getPermalink", ACCESS_MEMBER, "channels:read", chat_get_permalink},
    {"chat.update", ACCESS_MEMBER, "chat:write", chat_update},
    {"chat.delete", ACCESS_MEMBER, "chat:write", chat_delete},
    {"channels.create", ACCESS_MEMBER, "channels:manage", channels_create},
    {"channels.list", ACCESS_MEMBER, "channels:read", channels_list},
    {"channels.info", ACCESS_MEMBER, "channels:read", channels_info},
    {"channels.members", ACCESS_MEMBER, "channels:read", channels_members},
    {"channels.history", ACCESS_MEMBER, "channels:history", channels_history},
    {"channels.replies", ACCESS_MEMBER, "channels:history", channels_replies},
    {"channels.events", ACCESS_MEMBER, "channels:history", channels_events},
    {"channels.join", ACCESS_MEMBER, "channels:join", channels_join},
    {"channels.leave", ACCESS_MEMBER, "channels:manage", channels_leave},
    {"channels.invite", ACCESS_MEMBER, "channels:manage", channels_invite},
    {"channels.kick", ACCESS_MEMBER, "channels:manage", channels_kick},
    {"channels.archive", ACCESS_MEMBER, "channels:manage", channels_archive},
    {"channels.unarchive", ACCESS_MEMBER, "channels:manage", channels_unarchive},
    {"channels.rename", ACCESS_MEMBER, "channels:manage", channels_rename},
    {"channels.setTopic", ACCESS_MEMBER, "channels:manage", channels_set_topic},
    {"channels.setPurpose", ACCESS_MEMBER, "channels:manage", channels_set_purpose},
    {"channels.open", ACCESS_MEMBER, "im:write", channels_open},
    {"channels.close", ACCESS_MEMBER, "im:write", channels_close},
    {"channels.mark", ACCESS_MEMBER, "channels:write", channels_mark},
    {"channels.markAll", ACCESS_MEMBER, "channels:write", channels_mark_all},
    {"channels.markMany", ACCESS_MEMBER, "channels:write", channels_mark_many},
    {"channels.markUnread", ACCESS_MEMBER, "channels:write", channels_mark_unread},
    {"channels.setNotifications", ACCESS_MEMBER, "channels:write", channels_set_notifications},
    {"threads.mark", ACCESS_MEMBER, "channels:write", threads_mark},
    {"threads.follow", ACCESS_MEMBER, "channels:write", threads_follow},
    {"threads.unfollow", ACCESS_MEMBER, "channels:write", threads_unfollow},
    {"threads.list", ACCESS_MEMBER, "channels:read", threads_list},
    {"channels.markMessages", ACCESS_MEMBER, "channels:write", channels_mark_messages},
    {"channels.setStrategy", ACCESS_MEMBER, "channels:manage", channels_set_strategy},
    {"reactions.add", ACCESS_MEMBER, "reactions:write", reactions_add},
    {"reactions.remove", ACCESS_MEMBER, "reactions:write", reactions_remove},
    {"reactions.get", ACCESS_MEMBER, "reactions:read", reactions_get},
    {"reactions.list", ACCESS_MEMBER, "reactions:read", reactions_list},
    {"pins.add", ACCESS_MEMBER, "pins:write", pins_add},
    {"pins.remove", ACCESS_MEMBER, "pins:write", pins_remove},
    {"pins.list", ACCESS_MEMBER, "pins:read", pins_list},
    {"unread.sync", ACCESS_MEMBER, "channels:read", unread_sync},
    {"events.sync", ACCESS_MEMBER, "channels:history", events_sync},
    {"client.counts", ACCESS_MEMBER, "channels:read", client_counts},
    {"users.info", ACCESS_MEMBER, "users:read", users_info},
    {"users.list", ACCESS_MEMBER, "users:read", users_list},
    {"users.lookupByEmail", ACCESS_MEMBER, "users:read.email", users_lookup_by_email},
    {"users.search", ACCESS_MEMBER, "users:read", users_search},
    {"users.identity", ACCESS_MEMBER, "identity.basic", users_identity},
    {"users.profile.get", ACCESS_MEMBER, "users.profile:read", users_profile_get},
    {"users.profile.set", ACCESS_MEMBER, "users.profile:write", users_profile_set},
    {"users.prefs.get", ACCESS_MEMBER, "users:read", users_prefs_get},
    {"team.info", ACCESS_MEMBER, "team:read", team_info},
    {"bots.info", ACCESS_MEMBER, "users:read", bots_info},
    {"emoji.list", ACCESS_MEMBER, "emoji:read", emoji_list},
    {"usergroups.list", ACCESS_MEMBER, "usergroups:read", usergroups_list},
    {"users.conversations", ACCESS_MEMBER, "channels:read", users_conversations},
    {"users.getPresence", ACCESS_MEMBER, "users:read", users_get_presence},
    {"users.setPresence", ACCESS_MEMBER, "users:write", users_set_presence},
    {"devices.register", ACCESS_MEMBER, "devices:write", devices_register},
    {"devices.unregister", ACCESS_MEMBER, "devices:write", devices_unregister},
    {"devices.list", ACCESS_MEMBER, "devices:read", devices_list},
    {"notifications.get", ACCESS_MEMBER, "notifications:read", notifications_get},
    {"notifications.set", ACCESS_MEMBER, "notifications:write", notifications_set},
    {"dnd.info", ACCESS_MEMBER, "dnd:read", dnd_info},
    {"dnd.teamInfo", ACCESS_MEMBER, "dnd:read", dnd_team_info},
    {"dnd.setSnooze", ACCESS_MEMBER, "dnd:write", dnd_set_snooze},
    {"dnd.endSnooze", ACCESS_MEMBER, "dnd:write", dnd_end_snooze},
    {"rtm.connect", ACCESS_MEMBER, "rtm:stream", rtm_connect},
    {"rtm.start", ACCESS_MEMBER, "rtm:stream", rtm_start},
    {"apps.connections.open", ACCESS_APP, NULL, apps_connections_open},
    {"admin.workspaces.create", ACCESS_OPERATOR, NULL, admin_workspaces_create},
    {"admin.users.create", ACCESS_ADMIN, "admin", admin_users_create},
    {"admin.users.createMany", ACCESS_ADMIN, "admin", admin_users_create_many},
    {"admin.users.list", ACCESS_ADMIN, "admin", admin_users_list},
    {"admin.users.setActive", ACCESS_ADMIN, "admin", admin_users_set_active},
    {"admin.users.update", ACCESS_ADMIN, "admin", admin_users_update},
    {"admin.emoji.add", ACCESS_ADMIN, "admin", admin_emoji_add},
    {"admin.emoji.remove", ACCESS_ADMIN, "admin", admin_emoji_remove},
    {"admin.users.revokeTokens", ACCESS_ADMIN, "admin", admin_users_revoke_tokens},
    {"admin.channels.addMembers", ACCESS_ADMIN, "admin", admin_channels_add_members},
    {"admin.tokens.create", ACCESS_ADMIN, "admin", admin_tokens_create},
    {"admin.tokens.revoke", ACCESS_ADMIN, "admin", admin_tokens_revoke},
    {"admin.tokens.list", ACCESS_ADMIN, "admin", admin_tokens_list},
    {"admin.apps.create", ACCESS_ADMIN, "admin", admin_apps_create},
    {"admin.apps.delete", ACCESS_ADMIN, "admin", admin_apps_delete},
    {"admin.pushApps.create", ACCESS_ADMIN, "admin", admin_push_apps_create},
    {"admin.pushApps.list", ACCESS_ADMIN, "admin", admin_push_apps_list},
    {"admin.pushApps.update", ACCESS_ADMIN, "admin", admin_push_apps_update},
    {"admin.pushApps.delete", ACCESS_ADMIN, "admin", admin_push_apps_delete},
    {"admin.webhooks.create", ACCESS_ADMIN, "admin", admin_webhooks_create},
    {"admin.webhooks.list", ACCESS_ADMIN, "admin", admin_webhooks_list},
    {"admin.webhooks.delete", ACCESS_ADMIN, "admin", admin_webhooks_delete},
    {SERVER_WEBHOOK, ACCESS_WEBHOOK, NULL, webhooks_post}, // never called by this name
    {"admin.auth.providers.create", ACCESS_ADMIN, "admin", admin_auth_providers_create},
    {"admin.auth.providers.list", ACCESS_ADMIN, "admin", admin_auth_providers_list},
    {"admin.auth.providers.update", ACCESS_ADMIN, "admin", admin_auth_providers_update},
    {"admin.auth.providers.delete", ACCESS_ADMIN, "admin", admin_auth_providers_delete},
    {"files.getUploadURLExternal", ACCESS_MEMBER, "files:write", files_get_upload_url_external},
    {"files.completeUploadExternal", ACCESS_MEMBER, "files:write", files_complete_upload_external},
    {"files.info", ACCESS_MEMBER, "files:read", files_info},
    {"files.list", ACCESS_MEMBER, "files:read", files_list},
    {"files.delete", ACCESS_MEMBER, "files:write", files_delete},
    {"files.sign", ACCESS_MEMBER, "files:read", files_sign},
    {SERVER_UPLOAD, ACCESS_OPEN, NULL, files_receive},
    {SERVER_FILE, ACCESS_MEMBER, "files:read", files_send},
    {SERVER_FILE_SIGNED, ACCESS_OPEN, NULL, files_send_signed},
    {"admin.push.test", ACCESS_ADMIN, "admin", admin_push_test},
};

_Static_assert(sizeof methods / sizeof methods[0] <= METHODS_MAX, "METHODS_MAX is too small");

const struct method *method_find(const char *name)
{
    char aliased[64];

    name = method_alias_resolve(name, aliased, sizeof aliased);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

size_t method_number(const struct method *method)
{
    return (size_t)(method - methods);
}
