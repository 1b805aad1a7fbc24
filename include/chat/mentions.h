// SPDX-License-Identifier: Apache-2.0
// Whom a message mentions, by what its author wrote: <@U…>, <!channel> and their like in its text,
// and the elements that say the same in its blocks. Whether they are members is for the tables to
// say.
#pragma once

#include "base/id.h"

#include <jansson.h>

// Where in a message a mention stands: bits, as in the column mentions.sources.
enum mention_source { MENTION_IN_TEXT = 1, MENTION_IN_BLOCKS = 2 };

struct mention {
    char user_id[ID_SIZE]; // "": everybody in the channel
    int sources;
};

// Each once, by id. All-zero is none.
struct mentions {
    struct mention *items; // heap
    int count;
    int users; // without everybody in the channel
};

void mentions_done(struct mentions *mentions);

// Adds what `length` bytes of mrkdwn mention. -ERROR_MEMORY; -ERROR_INVALID_ARGUMENTS when these
// are more than `users_max` users.
NODISCARD int mentions_find(struct mentions *mentions, const char *text, size_t length,
                            enum mention_source source, int users_max);

// Adds what blocks mention: elements of rich text, and mrkdwn. Likewise.
NODISCARD int mentions_find_in_blocks(struct mentions *mentions, json_t *blocks, int users_max);
