// SPDX-License-Identifier: Apache-2.0
// Frames of type `position`: they tell a native socket where it can resume.
//
// While a backlog is sent, the interval between them grows from 1 to POSITION_EVERY frames: even a
// connection that breaks soon makes progress. Afterwards a position is sent every POSITION_TICKS if
// other frames were sent since (answers to pings do not count), as soon as there is a watermark.
// Each socket counts its own ticks, so that not all receive their positions at once. It covers
// every frame that was sent before it: the channels that were sent further than the watermark are
// named. If these are too many, it waits for the next watermark.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct backlog;
struct connection;

enum { POSITION_EVERY = 50, POSITION_TICKS = 5 };

struct positions {
    bool is_catching_up; // a backlog is being sent
    int frames;          // sent since the last position, while catching up
    int step;            // frames until the next position, while catching up
    int ticks;           // since the last position, at most POSITION_TICKS
    int due;             // turns that may still have a newer position to send
};

// The hello was sent: sends the first position.
void positions_begin(struct positions *positions, struct connection *c,
                     const struct backlog *backlog);
void positions_sent(struct positions *positions, struct connection *c,
                    const struct backlog *backlog); // a frame was queued, other than an answer
// The backlog has ended, or there is a new watermark.
void positions_settle(struct positions *positions, struct connection *c,
                      const struct backlog *backlog);
void positions_tick(struct positions *positions); // every CONNECTION_TICK_MS
