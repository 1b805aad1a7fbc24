// SPDX-License-Identifier: Apache-2.0
// Tells a native socket where it can be continued from: frames of the type `position`.
//
// While it catches up they come the more seldom the longer it lasts, but at least every
// POSITION_EVERY frames: even a connection that breaks at once gets further. Later one comes every
// POSITION_TICKS, if something was sent (answers to pings do not count); each socket has its own
// turns, so that not all are told at once what all were sent.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct backlog;
struct connection;

enum { POSITION_EVERY = 50, POSITION_TICKS = 5 };

struct positions {
    bool is_catching_up;
    int frames;      // sent since the last position, while it catches up
    int step;        // after how many of them the next one comes
    int ticks;       // since its last turn
    int due;         // so many turns may still find something new
    uint32_t serial; // of the watermark that was told last
};

// Its hello was sent: tells the first one.
void positions_begin(struct positions *positions, struct connection *c,
                     const struct backlog *backlog);
void positions_sent(struct positions *positions, struct connection *c,
                    const struct backlog *backlog); // a frame was queued that tells something
// The backlog is over, or there is a new watermark.
void positions_settle(struct positions *positions, struct connection *c,
                      const struct backlog *backlog);
void positions_tick(struct positions *positions, struct connection *c,
                    const struct backlog *backlog); // every CONNECTION_TICK_MS
