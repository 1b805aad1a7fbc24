// SPDX-License-Identifier: Apache-2.0
// The event app_mention, which an app gets in addition to a message that names its bot.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

// Events of apps are identified by channel and seq; an app_mention has the negated seq of its
// message.

struct app_mention {
    char *frame; // JSON text on the heap
    size_t frame_length;
    char *users; // the ids of the users it names, each followed by a space; heap
};

void app_mention_done(struct app_mention *mention);
#define CLEANUP_APP_MENTION CLEANUP(app_mention_done)

// Makes an app_mention from the frame of a post. 1: made. 0: there is none, since the post names
// nobody but its author, or is of a kind without app_mention (in a direct conversation of two; a
// topic). -ERROR_MEMORY.
NODISCARD int app_mention_read(const char *frame, size_t length, struct app_mention *ret_mention);

bool app_mention_names(const struct app_mention *mention, const char *user_id);
