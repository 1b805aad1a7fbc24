// SPDX-License-Identifier: Apache-2.0
// The content of a message: text, and JSON (blocks, attachments, metadata).
#pragma once

#include "chat/mentions.h"
#include "invocation.h"

struct content {
    const char *text; // the request's; NULL: absent
    size_t text_length;
    char *extra;              // compact JSON object on the heap; NULL: empty
    bool shows;               // has blocks or attachments, so text is optional
    bool has_blocks;          // blocks were given, possibly empty
    bool is_edit;             // input of take_content(): `extra` also lists what to remove
    bool is_broadcast;        // input: a broadcast reply, which has a subtype of its own
    const char *files;        // input: a JSON array of file objects to share; NULL: none
    bool is_stream_end;       // input: markdown_text is all of a streamed message; blocks follow it
    const char *fixed_extra;  // input: read only `text`, and use this as extra
    struct mentions mentions; // in text and blocks
    bool links_names;         // link_names, or parse=full
    char *linked;             // the text with names linked, on the heap
    bool is_markdown;         // the text is markdown_text
    char *blocks_text;        // in place of a text that is not given, on the heap
};

// Reads and validates the arguments. False: an error was replied.
NODISCARD bool take_content(struct invocation *invocation, struct content *content);
void content_done(struct content *content);

// Adds what follows from the arguments: a text to blocks alone, a block to markdown_text. Apart
// from take_content(), since a retry is recognised by what was sent. False: an error was replied.
NODISCARD bool content_complete(struct invocation *invocation, struct content *content);

// What a message says that is begun without a text by chat.startStream.
#define STREAM_START_TEXT "\u2026"

// Reads the required argument markdown_text. False: an error was replied.
NODISCARD bool take_markdown_text(struct invocation *invocation, const char **ret_text);

// Adds the mentions in the text. False: an error was replied.
NODISCARD bool content_find_mentions(struct invocation *invocation, struct content *content);

// Replaces "@name" in the text with "<@U…>" if requested (content_link.c). Calls `fn` once, inside
// this call or on a later turn; false: an error was replied. The content stays the caller's and
// must be valid until then.
typedef void content_linked_fn(void *arg, bool good);
void content_link(struct invocation *invocation, struct content *content, content_linked_fn *fn,
                  void *arg);
