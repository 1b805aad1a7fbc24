// SPDX-License-Identifier: Apache-2.0
// Event streams (GET /events): the connection's way from its request to its first event.
#pragma once

#include "position.h"

#include <stdbool.h>
#include <stddef.h>

struct connection;
struct resume;
struct store_outcome;

// What an event stream has in addition to a connection.
struct sse {
    struct position since; // all before it was sent: at first, where the client asked to continue;
                           // xid 0: it begins now
    struct progress progress; // of the backlog since then
    bool is_settled;          // its events have the watermark as their id
    uint32_t serial;          // the last watermark that was asked for without its channels
    char id[POSITION_SIZE];   // of its events until it is settled
    const char *cors;         // CORS headers for the page that asks: static or `cors_text`
    struct resume *resume;    // while earlier events are read back
    char cors_text[512];
};

// The request head of /events is complete: answers it, or asks Postgres whose it is.
void sse_accept(struct connection *c, size_t head_length);
// After asking for the stream's owner (result `r`; `known`: found): the HTTP status with which to
// refuse the stream, or 0.
int sse_refusal(const struct connection *c, int r, bool known);
void sse_refuse(struct connection *c, int status);
void sse_open(struct connection *c, const struct store_outcome *outcome); // of resume_statement
// Tells that anything may be missing: the client is to read all with unread.sync.
void sse_tell_gap(struct connection *c);
void sse_beat(struct connection *c); // keeps it alive
// Gives its events the watermark as their id, if it has got everything below that.
void sse_settle(struct connection *c);
void sse_free(struct connection *c); // does nothing for a socket
