// SPDX-License-Identifier: Apache-2.0
// What an event stream missed, and how its seats come to be told what happens now.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

struct connection;
struct event;
struct result;
struct stream;

// Seats the connection in its channels by the answer of resume_statement. -ERROR_MEMORY.
NODISCARD int sse_backlog_begin(struct connection *c, const struct result *result);

// The user came (back) into the channel of `stream`. True while the connection is still being told
// what was before: its seat waits for that.
bool sse_backlog_joined(struct connection *c, const struct stream *stream);

// Whether the connection is still to be sent what it missed in the channel of an event about what
// its user has read: see resume_awaits().
bool sse_backlog_awaits(struct connection *c, const struct event *event);
