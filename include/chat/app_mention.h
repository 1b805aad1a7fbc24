// SPDX-License-Identifier: Apache-2.0
// The event app_mention: what an app gets beside a message that names its bot.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

// Where events of apps are told apart by channel and seq, a mention has its message's seq, negated.

struct app_mention {
    char *frame; // JSON text on the heap
    size_t frame_length;
    char *users; // whom it names: ids with a space behind each, heap
};

void app_mention_done(struct app_mention *mention);
#define CLEANUP_APP_MENTION CLEANUP(app_mention_done)

// Makes it of the frame of a post. 0: it names nobody but its author, or is one that no mention is
// told of (in a direct conversation of two; a topic). 1: made. -ERROR_MEMORY.
NODISCARD int app_mention_read(const char *frame, size_t length, struct app_mention *ret_mention);

bool app_mention_names(const struct app_mention *mention, const char *user_id);
