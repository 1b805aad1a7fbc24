// SPDX-License-Identifier: Apache-2.0
// The event_callback envelope, which wraps a frame for an app, over Socket Mode and HTTP.
#pragma once

#include "base/json_writer.h"
#include "events/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct callback {
    const char *app_id;
    const char *workspace_id;
    const char *bot_user_id;
    const char *channel_id;
    int64_t seq; // negative: an app_mention (app_mention.h)
    int64_t happened_us;
    const char *frame; // JSON text
    size_t frame_length;
};

// The name apps use to subscribe to events of this kind in channels of this type:
// "message.channels", "channel_rename" … NULL: not sent to apps, since Slack has no such event.
const char *callback_name(enum event_kind kind, enum channel_type type);
const char *callback_name_of_note(const char *note); // the same of a note
// Whether `name` is an event name that apps can subscribe to.
bool callback_name_is_known(const char *name, size_t length);

// Writes the envelope. The event_id is derived from channel and seq, so retries and other instances
// produce the same one.
void callback_write(struct json_writer *w, const struct callback *callback);
