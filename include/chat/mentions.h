// SPDX-License-Identifier: Apache-2.0
// Finds whom a message mentions: by <@U…>, <!channel> and the like in its text, and the
// corresponding elements of its blocks. Whether these are members of the channel is checked in
// Postgres.
#pragma once

#include "base/id.h"

#include <jansson.h>

// Where a message has a mention: bits, as in the column mentions.sources.
enum mention_source { MENTION_IN_TEXT = 1, MENTION_IN_BLOCKS = 2 };

struct mention {
    char user_id[ID_SIZE]; // "": everybody in the channel
    int sources;
};

// Each user once, sorted by id. All-zero is none.
struct mentions {
    struct mention *items; // heap
    int count;
    int users; // not counting "everybody in the channel"
};

void mentions_done(struct mentions *mentions);

// Adds the mentions in `length` bytes of mrkdwn. -ERROR_MEMORY; -ERROR_INVALID_ARGUMENTS if there
// are then more than `users_max` users.
NODISCARD int mentions_find(struct mentions *mentions, const char *text, size_t length,
                            enum mention_source source, int users_max);

// Adds the mentions in blocks: in elements of rich text, and in mrkdwn. Same errors.
NODISCARD int mentions_find_in_blocks(struct mentions *mentions, json_t *blocks, int users_max);
