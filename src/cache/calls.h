// SPDX-License-Identifier: Apache-2.0
// A FIFO queue of calls, in a growing ring.
#pragma once

#include "cache/cache.h"

struct cache_call {
    cache_fn *fn; // NULL: reply not wanted
    void *arg;
    int64_t deadline_ms;
    char *command; // of a function call, kept for a retry; owned by the call's holder
    size_t length;
    int r; // error of a refused call
    bool retried;
};

// All-zero is empty.
struct calls {
    struct cache_call *ring;
    size_t first;
    size_t count;
    size_t capacity; // a power of two, or 0
};

void calls_push(struct calls *calls, const struct cache_call *call);
bool calls_pop(struct calls *calls, struct cache_call *ret_call); // false when empty
const struct cache_call *calls_first(const struct calls *calls);  // NULL when empty
size_t calls_count(const struct calls *calls);
void calls_done(struct calls *calls); // frees the ring of an empty queue
