// SPDX-License-Identifier: Apache-2.0
// The two clocks: monotonic for every timer and deadline, wall only for logs and what a person
// reads.
#pragma once

#include <stdint.h>

int64_t clock_monotonic_us(void);
int64_t clock_monotonic_ms(void);
int64_t clock_wall_us(void);
