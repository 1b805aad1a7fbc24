// SPDX-License-Identifier: Apache-2.0
// Writes event_callback envelopes for apps.
#include "chat/callback.h"

#include "events/event_type.h"

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

static const char *const messages[CHANNEL_TYPE_MAX] = {
    [CHANNEL_PUBLIC] = "message.channels",
    [CHANNEL_PRIVATE] = "message.groups",
    [CHANNEL_MPIM] = "message.mpim",
    [CHANNEL_IM] = "message.im",
};

const char *callback_name_of_note(const char *note)
{
    return event_note_is_slacks(note) ? note : NULL;
}

const char *callback_name(enum event_kind kind, enum channel_type type)
{
    switch (kind) {
    case EVENT_POST:
    case EVENT_EDIT:
    case EVENT_DELETE:
        return messages[type];
    case EVENT_JOIN:
    case EVENT_LEAVE:
        return event_is_slacks(kind, type, event_type(kind, type)) ? event_type(kind, type) : NULL;
    case EVENT_ARCHIVE:
    case EVENT_UNARCHIVE:
    case EVENT_RENAME:
        return event_type(kind, type);
    default:
        return NULL;
    }
}

static bool is_name(const char *known, const char *name, size_t length)
{
    return known && strlen(known) == length && memcmp(known, name, length) == 0;
}

static bool is_note_name(const char *name, size_t length)
{
    char note[EVENT_NOTE_SIZE];

    if (length >= sizeof note)
        return false;
    memcpy(note, name, length);
    note[length] = '\0';
    return event_note_is_slacks(note);
}

bool callback_name_is_known(const char *name, size_t length)
{
    if (is_name("app_mention", name, length))
        return true;
    if (is_note_name(name, length))
        return true;
    for (enum event_kind kind = 0; kind < EVENT_KIND_MAX; kind++)
        for (enum channel_type type = 0; type < CHANNEL_TYPE_MAX; type++)
            if (is_name(callback_name(kind, type), name, length))
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
