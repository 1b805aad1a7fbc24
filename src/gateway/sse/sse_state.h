// SPDX-License-Identifier: Apache-2.0
// What an event stream has in addition to a connection.
#pragma once

#include "../connection.h"
#include "../position.h"

#include <assert.h>
#include <stdbool.h>

struct resume;

enum { SSE_MAGIC = 0x53534531 }; // shows that connection->kind is a struct sse

struct sse {
    unsigned magic;        // SSE_MAGIC
    struct place place;    // at first, where the client asked to continue (xid 0: it begins now);
                           // its text is the id of events until it is settled
    bool is_settled;       // its events have the watermark as their id
    uint32_t serial;       // the last watermark that was asked for without its channels
    const char *cors;      // CORS headers for the page that asks: static or `cors_text`
    struct resume *resume; // while earlier events are read back
    char cors_text[512];
};

static inline struct sse *sse_of(const struct connection *c)
{
    struct sse *sse = c->kind;
    assert(sse->magic == SSE_MAGIC);
    return sse;
}
