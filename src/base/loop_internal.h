// SPDX-License-Identifier: Apache-2.0
// The timers of a loop: a binary heap by deadline. Each timer has its place reserved when it is
// made, so that setting one cannot fail.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct loop_timers {
    struct loop_timer **heap;
    size_t count;    // running timers
    size_t existing; // timers made and not freed
    size_t capacity;
};

struct loop_timers *loop_timers_of(struct loop *loop);

// Whether the caller may use the loop: it is on its thread, or the loop does not run.
bool loop_is_mine(const struct loop *loop);

// The earliest deadline; there must be one.
int64_t loop_timers_next_us(const struct loop_timers *timers);

// Calls and takes out all that are due.
void loop_timers_run(struct loop_timers *timers, int64_t now_us);
