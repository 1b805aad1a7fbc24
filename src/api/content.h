// SPDX-License-Identifier: Apache-2.0
// What a message says: text, and the JSON that goes with it (blocks, attachments, metadata).
#pragma once

#include "chat/mentions.h"
#include "invocation.h"

struct content {
    const char *text; // the request's; NULL when absent
    size_t text_length;
    char *extra; // compact JSON object on the heap; NULL when none of its members was given, ""
                 // when all were given empty
    struct mentions mentions; // in what was given
};

// Reads and checks the arguments. False after an error was replied.
NODISCARD bool take_content(struct invocation *invocation, struct content *content);
void content_done(struct content *content);
