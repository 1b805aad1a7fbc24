// SPDX-License-Identifier: Apache-2.0
// The app_mention event, which an app receives in addition to the message that mentions its bot.
// Any thread.
#pragma once

#include "base/channel.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

// Apps' events are identified by channel and seq. An app_mention has the negated seq of its
// message.

struct app_mention {
    char *frame; // JSON text, on the heap
    size_t frame_length;
    char *users; // ids of the mentioned users, each followed by a space; on the heap
};

void app_mention_done(struct app_mention *mention);
#define CLEANUP_APP_MENTION CLEANUP(app_mention_done)

// Builds an app_mention from the frame of a post in a channel of that type. 1: done. 0: no
// app_mention, because the post mentions nobody but its author, or is in a direct conversation of
// two or a channel notice. -ERROR_MEMORY.
NODISCARD int app_mention_read(enum channel_type channel_type, const char *frame, size_t length,
                               struct app_mention *ret_mention);

bool app_mention_names(const struct app_mention *mention, const char *user_id);
