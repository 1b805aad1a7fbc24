// SPDX-License-Identifier: Apache-2.0
// Waits for what another thread or process does, and fails the test when it does not.
#pragma once

#include "base/clock.h"

#include <time.h>

enum { WAIT_MS = 60000 };

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        int64_t until_ms = clock_monotonic_ms() + WAIT_MS;                                         \
        while (!(condition) && clock_monotonic_ms() < until_ms)                                    \
            (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);                         \
        assert_true(condition);                                                                    \
    } while (0)
