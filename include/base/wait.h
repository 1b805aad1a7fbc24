// SPDX-License-Identifier: Apache-2.0
// Waits with deadlines on the monotonic clock.
#pragma once

#include "base/clock.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

// Waits, with `lock` held, until `condition` is signalled or clock_monotonic_ms() reaches
// `until_ms`. False on timeout.
static inline bool wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until) == 0;
}

// Joins a thread, or gives up when clock_monotonic_ms() reaches `until_ms`. False on timeout.
// Polls, because ThreadSanitizer supports no join with a deadline on the monotonic clock.
static inline bool join_until(pthread_t thread, int64_t until_ms)
{
    const int look_ms = 5;
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (clock_monotonic_ms() >= until_ms)
            return false;
        (void)poll(NULL, 0, look_ms);
    }
    return true;
}
