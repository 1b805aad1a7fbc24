// SPDX-License-Identifier: Apache-2.0
// Closes connections whose token is no longer valid.
#pragma once

struct loop_timer;

struct tokens {
    unsigned part; // which part of all tokens is checked next
    struct loop_timer *timer;
};

void tokens_on_timer(void *gateway);
