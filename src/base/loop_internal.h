// SPDX-License-Identifier: Apache-2.0
// A loop's timers: a binary heap ordered by deadline. A timer's slot is reserved when the timer is
// created, so setting it cannot fail.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct loop_timers {
    struct loop_timer **heap;
    size_t count;    // running timers
    size_t existing; // timers created and not yet freed
    size_t capacity;
};

struct loop_timers *loop_timers_of(struct loop *loop);

// Whether the caller may use the loop: it is on the loop's thread, or the loop is not running.
bool loop_is_mine(const struct loop *loop);

// The earliest deadline. At least one timer must be running.
int64_t loop_timers_next_us(const struct loop_timers *timers);

// Removes all due timers and calls them.
void loop_timers_run(struct loop_timers *timers, int64_t now_us);
