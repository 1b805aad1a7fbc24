// SPDX-License-Identifier: Apache-2.0
// Fetches missing events from Postgres, or tells them as a gap.
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct loop_timer;
struct stream;

struct holes {
    struct list list;
    struct loop_timer *timer;
};

void hole_heard(struct stream *stream, int64_t seq);                 // there is an event `seq`
bool hole_is_beyond_bound(const struct stream *stream, int64_t seq); // if `seq` were the head
void hole_on_timer(void *gateway);
