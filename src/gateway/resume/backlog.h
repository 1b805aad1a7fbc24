// SPDX-License-Identifier: Apache-2.0
// Where a connection can be continued from: what it missed before it was opened, and how its
// subscribers come to be told what happens now.
#pragma once

#include "../position.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct event;
struct params;
struct result;
struct resume;
struct statement;
struct feed;

struct backlog {
    struct connection *connection;
    struct place place;    // at first, where the client asked to continue (xid 0: it begins now)
    bool is_too_old;       // that was of no use any more: anything may be missing
    bool is_settled;       // its position is the watermark
    uint32_t serial;       // the last watermark that was asked for without its channels
    struct resume *resume; // while earlier events are read back
};

// The connection outlives it; `place` may be NULL: it begins now.
void backlog_init(struct backlog *backlog, struct connection *c, const struct place *place);

// Reads the user's channels for backlog_begin(). Adds its parameters behind the user's id.
const struct statement *backlog_channels(struct backlog *backlog, struct params *params);
// Whether the place it came with was given to somebody else.
bool backlog_is_of_another(const struct backlog *backlog);
// Subscribes the connection in its channels by the answer. -ERROR_MEMORY.
NODISCARD int backlog_begin(struct backlog *backlog, const struct result *result);

// Tells on; to be called when the connection was opened, and when it was flushed.
void backlog_go_on(struct backlog *backlog);

// There is a new watermark. Takes it as the position, if all below it was sent.
void backlog_settle(struct backlog *backlog);
// All before it was sent. The text lives as long as the connection sends nothing.
const char *backlog_position(const struct backlog *backlog);
// The same as a position of the user's own, to POSITION_SIZE bytes.
void backlog_position_own(const struct backlog *backlog, char *ret_text);

// The user came (back) into the channel of `feed`. True while the connection is still being told
// what was before: its subscriber waits for that.
bool backlog_joined(struct backlog *backlog, const struct feed *feed);

// Whether the connection is still to be sent what it missed in the channel of an event about what
// its user has read: see resume_awaits().
bool backlog_awaits(struct backlog *backlog, const struct event *event);

void backlog_end(struct backlog *backlog); // nothing more is told; may be called again
