// SPDX-License-Identifier: Apache-2.0
// A loop's timers: a binary heap ordered by deadline. A timer's slot is reserved when the timer is
// created, so setting it cannot fail.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/loop.h"

struct loop_timers {
    struct loop_timer **heap;
    size_t count;    // running timers
    size_t existing; // timers created and not yet freed
    size_t capacity;
};

// The first member of a loop: what its timers need of it.
struct loop_core {
    uint32_t tag;
    struct loop_timers timers;
    bool is_running;
    pthread_t thread; // the thread in loop_run()
};

static inline struct loop_core *loop_core_of(struct loop *loop)
{
    return CAST(loop_core, loop);
}

// Whether the caller may use the loop: it is on the loop's thread, or the loop is not running.
static inline bool loop_core_is_mine(const struct loop_core *core)
{
    return !core->is_running || pthread_equal(core->thread, pthread_self());
}

// The earliest deadline. At least one timer must be running.
int64_t loop_timers_next_us(const struct loop_timers *timers);

// Removes all due timers and calls them.
void loop_timers_run(struct loop_timers *timers, int64_t now_us);
