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
    bool has_blocks;          // given, be it empty
    bool is_edit;             // set before take_content(): `extra` tells what to take away, too
    bool is_broadcast;        // set before: a reply that its channel shows has its own subtype
    const char *fixed_extra;  // set before: there is but text, and this goes with it
    struct mentions mentions; // in what was given
    bool links_names;         // link_names, or parse=full
    char *linked;             // the text with its names linked, heap
};

// Reads and checks the arguments. False after an error was replied.
NODISCARD bool take_content(struct invocation *invocation, struct content *content);
void content_done(struct content *content);

// Adds what its text mentions. False after an error was replied.
NODISCARD bool content_find_mentions(struct invocation *invocation, struct content *content);

// Replaces "@name" in the text by whom it means, where that is asked for (content_link.c). Calls
// `fn` once, now or on a later turn; with false after an error was replied. The content belongs to
// its owner all the while, and must live until then.
typedef void content_linked_fn(void *arg, bool good);
void content_link(struct invocation *invocation, struct content *content, content_linked_fn *fn,
                  void *arg);
