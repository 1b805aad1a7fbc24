// SPDX-License-Identifier: Apache-2.0
// Writes event_callback envelopes, the form in which apps get events.
#include "chat/callback.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EVENT_ID_MAX = 64 };

static void authorizations_write(struct json_writer *w, const struct callback *callback)
{
    json_key(w, "authorizations");
    json_open_array(w);
    json_open_object(w);
    json_key(w, "enterprise_id");
    json_none(w);
    json_key_string(w, "team_id", callback->workspace_id);
    json_key_string(w, "user_id", callback->bot_user_id);
    json_key_bool(w, "is_bot", true);
    json_key_bool(w, "is_enterprise_install", false);
    json_close_object(w);
    json_close_array(w);
}

// Those that are messages, by the channel_type of their frames.
static const struct {
    const char *channel_type;
    const char *name;
} messages[] = {{"channel", "message.channels"},
                {"group", "message.groups"},
                {"mpim", "message.mpim"},
                {"im", "message.im"}};
static const char *const others[] = {
    "app_mention",       "channel_archive",       "channel_rename",
    "channel_unarchive", "group_archive",         "group_rename",
    "group_unarchive",   "member_joined_channel", "member_left_channel"};

static const char *message_name(const json_t *frame)
{
    const char *type = json_string_value(json_object_get(frame, "channel_type"));
    for (size_t i = 0; type && i < sizeof messages / sizeof messages[0]; i++)
        if (strcmp(messages[i].channel_type, type) == 0)
            return messages[i].name;
    return "";
}

static bool is_direct_join(const json_t *frame, const char *type)
{
    const char *letter = json_string_value(json_object_get(frame, "channel_type"));
    return strcmp(type, "member_joined_channel") == 0 && letter && strcmp(letter, "D") == 0;
}

bool callback_name(const char *frame, size_t length, char *ret_name)
{
    CLEANUP_JSON json_t *value = NULL;
    bool is_read = json_read(frame, length, JSON_DEPTH_ANY, JSON_VALUES_ANY, &value) >= 0;
    const char *type = is_read ? json_string_value(json_object_get(value, "type")) : NULL;
    if (type && strcmp(type, "message") == 0)
        type = message_name(value);
    snprintf(ret_name, CALLBACK_NAME_SIZE, "%s", type ? type : "");
    return !type || !is_direct_join(value, type);
}

bool callback_name_is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        if (strlen(messages[i].name) == length && memcmp(messages[i].name, name, length) == 0)
            return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i]) == length && memcmp(others[i], name, length) == 0)
            return true;
    return false;
}

void callback_write(struct json_writer *w, const struct callback *callback)
{
    char event_id[EVENT_ID_MAX];
    snprintf(event_id, sizeof event_id, "Ev%s%c%" PRId64, callback->channel_id,
             callback->seq < 0 ? 'M' : 'S', imaxabs(callback->seq));
    json_open_object(w);
    json_key_string(w, "token", "");
    json_key_string(w, "team_id", callback->workspace_id);
    json_key_string(w, "api_app_id", callback->app_id);
    json_key_string(w, "type", "event_callback");
    json_key_string(w, "event_id", event_id);
    json_key_int(w, "event_time", callback->happened_us / 1000000);
    json_key_string(w, "event_context", event_id);
    json_key_bool(w, "is_ext_shared_channel", false);
    authorizations_write(w, callback);
    json_key(w, "event");
    json_raw(w, callback->frame, callback->frame_length);
    json_close_object(w);
}
