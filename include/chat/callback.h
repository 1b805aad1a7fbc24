// SPDX-License-Identifier: Apache-2.0
// What an app gets of an event, by Socket Mode and by HTTP alike: an event_callback around the
// frame.
#pragma once

#include "base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct callback {
    const char *app_id;
    const char *workspace_id;
    const char *bot_user_id;
    const char *channel_id;
    int64_t seq; // negative: of an app_mention (app_mention.h)
    int64_t happened_us;
    const char *frame; // JSON text
    size_t frame_length;
};

enum { CALLBACK_NAME_SIZE = 32 };

// What apps call an event that they ask for, by its frame: "message.channels", "channel_rename" …
// False: they never get it, since with Slack there is none: that of who comes into a direct
// conversation of two.
bool callback_name(const char *frame, size_t length, char *ret_name);
// Whether `length` bytes are the name of one.
bool callback_name_is_known(const char *name, size_t length);

// Its event_id is made of channel and seq: the same whoever sends the event, and however often.
void callback_write(struct json_writer *w, const struct callback *callback);
