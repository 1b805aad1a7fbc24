// SPDX-License-Identifier: Apache-2.0
// The events of one read of the log, on their way to Redis: first their effects, then the messages
// for gateways. So a client that receives an event and then requests counts finds it counted.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"

enum { ROUND_MAX = 512 };

// Not thread-safe: one per worker.
struct round {
    struct event *events[ROUND_MAX];
    size_t count;
    int64_t thread_read_s; // how long Redis keeps a thread's read cursor
    struct buffer wire;
};

void round_init(struct round *round, int64_t thread_read_s);
void round_done(struct round *round);

// Sorts the `count` events that the caller put into `events`, by channel and seq.
void round_order(struct round *round, size_t count);
// Releases all events.
void round_clear(struct round *round);

// Adds all commands of the round. May be repeated.
void round_add(struct round *round, struct pipeline *pipeline);
// Adds the commands that invalidate what the round could not change.
void round_add_forget(struct round *round, struct pipeline *pipeline);
