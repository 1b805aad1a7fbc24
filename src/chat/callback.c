// SPDX-License-Identifier: Apache-2.0
#include "chat/callback.h"

#include <inttypes.h>
#include <stdio.h>

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

void callback_write(struct json_writer *w, const struct callback *callback)
{
    char event_id[EVENT_ID_MAX];
    (void)snprintf(event_id, sizeof event_id, "Ev%s%c%" PRId64, callback->channel_id,
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
