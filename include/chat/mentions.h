// SPDX-License-Identifier: Apache-2.0
// Extracts the mentions of a message: <@U…>, <!channel> and the like in its text, and the
// corresponding elements of its blocks. Postgres checks later whether the users are members of the
// channel.
#pragma once

#include "base/id.h"

#include <jansson.h>
#include <stdbool.h>

// Where a message mentions a user; bit flags, as in the column mentions.sources.
enum mention_source { MENTION_IN_TEXT = 1, MENTION_IN_BLOCKS = 2 };

struct mention {
    char user_id[ID_SIZE]; // "": everybody in the channel
    int sources;
};

// One entry per user, sorted by id. All-zero is empty.
struct mentions {
    struct mention *items; // heap
    int count;
    int users; // excluding "everybody in the channel"
};

void mentions_done(struct mentions *mentions);

// Adds the mentions in `length` bytes of mrkdwn. -ERROR_INVALID_ARGUMENTS: more than `users_max`
// users. -ERROR_MEMORY.
NODISCARD int mentions_find(struct mentions *mentions, const char *text, size_t length,
                            enum mention_source source, int users_max);

// Whether <!name> mentions everybody in the channel: channel, here, everyone or group.
bool mentions_everybody(const char *name, size_t length);

// Adds the mentions in blocks: rich text elements and mrkdwn. Same errors.
NODISCARD int mentions_find_in_blocks(struct mentions *mentions, json_t *blocks, int users_max);
