// SPDX-License-Identifier: Apache-2.0
// A connection's backlog and position. Sends what the connection missed before it was opened,
// channel by channel; the subscription to a channel takes over when its part is sent.
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
    uint32_t tag;
    struct connection *connection;
    struct place place;    // at first, where the client asked to continue (xid 0: from now)
    bool is_too_old;       // it was too old: anything may be missing
    bool is_settled;       // the connection's position is the watermark
    uint32_t serial;       // last watermark query that did not include its channels
    struct resume *resume; // while earlier events are read back
};

// The connection must outlive it. `place` may be NULL: the connection starts from now.
void backlog_init(struct backlog *backlog, struct connection *c, const struct place *place);

// The statement that reads the user's channels for backlog_begin(); appends its parameters after
// the user's id.
const struct statement *backlog_channels(struct backlog *backlog, struct params *params);
// Whether the client's position belongs to another user.
bool backlog_is_of_another(const struct backlog *backlog);
// Subscribes the connection to the channels in `result`. -ERROR_MEMORY.
NODISCARD int backlog_begin(struct backlog *backlog, const struct result *result);

// Continues sending. Call it when the connection is open, and after each flush.
void backlog_advance(struct backlog *backlog);

// There is a new watermark: becomes the position if the connection was sent all below it.
void backlog_settle(struct backlog *backlog);
// The position up to which everything was sent. Valid until the connection is sent more.
const char *backlog_position(const struct backlog *backlog);
// Prints it as the user's own position, to PLACE_SIZE bytes. It covers all that the connection was
// sent. False: too many channels were sent further than the watermark, and nothing is printed.
// While a backlog is sent, it then covers less.
NODISCARD bool backlog_position_own(const struct backlog *backlog, char *ret_text);

// The user joined the channel of `feed`, perhaps again. True while the backlog still includes the
// channel: the subscription waits until it is sent.
bool backlog_joined(struct backlog *backlog, const struct feed *feed);

// See resume_awaits().
bool backlog_awaits(struct backlog *backlog, const struct event *event);

void backlog_end(struct backlog *backlog); // sends nothing more; may be called again
