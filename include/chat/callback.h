// SPDX-License-Identifier: Apache-2.0
// How an app gets an event, by Socket Mode and by HTTP: as an event_callback that contains the
// frame.
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
    int64_t seq; // negative for an app_mention (app_mention.h)
    int64_t happened_us;
    const char *frame; // JSON text
    size_t frame_length;
};

// The name by which apps subscribe to events of that kind in channels of that type:
// "message.channels", "channel_rename" … NULL: apps do not get them, since Slack has no such event.
const char *callback_name(enum event_kind kind, enum channel_type type);
// Whether `name` is the name of such an event.
bool callback_name_is_known(const char *name, size_t length);

// Writes it. The event_id is made from channel and seq, so it is the same whichever instance sends
// the event, and however often.
void callback_write(struct json_writer *w, const struct callback *callback);
