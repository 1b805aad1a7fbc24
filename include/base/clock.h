// SPDX-License-Identifier: Apache-2.0
// The two clocks: monotonic for all timers and deadlines, wall clock only for logs and times shown
// to people.
#pragma once

#include <stdint.h>

int64_t clock_monotonic_us(void);
int64_t clock_monotonic_ms(void);
int64_t clock_wall_us(void);
