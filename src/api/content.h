// SPDX-License-Identifier: Apache-2.0
// What a message says: text, and the JSON that goes with it (blocks, attachments, metadata).
#pragma once

#include "chat/mentions.h"
#include "invocation.h"

struct content {
    const char *text; // the request's; NULL when absent
    size_t text_length;
    char *extra;              // compact JSON object on the heap; NULL when there is nothing for it
    bool shows;               // there are blocks or attachments, so no text is needed
    bool has_blocks;          // blocks were given, perhaps empty
    bool is_edit;             // set before take_content(): `extra` also says what to remove
    bool is_broadcast;        // set before: a broadcast reply has a subtype of its own
    const char *fixed_extra;  // set before: only text is taken, and this is its extra
    struct mentions mentions; // in the text and blocks
    bool links_names;         // link_names, or parse=full
    char *linked;             // the text with its names linked, heap
};

// Reads and checks the arguments. False after an error was replied.
NODISCARD bool take_content(struct invocation *invocation, struct content *content);
void content_done(struct content *content);

// Adds the mentions in its text. False after an error was replied.
NODISCARD bool content_find_mentions(struct invocation *invocation, struct content *content);

// Replaces "@name" in the text by "<@U…>", if that was asked for (content_link.c). Calls `fn` once,
// now or on a later turn; with false after an error was replied. The content stays its owner's and
// must live until then.
typedef void content_linked_fn(void *arg, bool good);
void content_link(struct invocation *invocation, struct content *content, content_linked_fn *fn,
                  void *arg);
