// SPDX-License-Identifier: Apache-2.0
// Token buckets that instances share. Each loop decides alone, at once, by buckets of its own, and
// tells Redis soon after what it let through; the answer says what all others did. So the sum may
// exceed a limit by what loops let through before they hear of each other: it is taken off after.
// While Redis is away each loop keeps to the limit by itself. All on the loop's thread.
#pragma once

#include "base/loop.h"
#include "cache/cache.h"

struct limiter;

struct limiter_options {
    int64_t settle_ms; // Redis is told at least so often of what was let through
    int buckets_max;   // the one that was not used for longest goes
};

// `cache` may be NULL: the buckets are then this loop's alone. Must outlive loop_run(), and be
// freed after the cache.
NODISCARD int limiter_new(struct loop *loop, struct cache *cache,
                          const struct limiter_options *options, struct limiter **ret_limiter);
void limiter_free(struct limiter *limiter);

// Takes one call out of the bucket of `subject` (an id) and `name` (short static text), which holds
// `per_minute` calls and fills up within a minute. 0, or the whole seconds after which there will
// be one.
int64_t limiter_take(struct limiter *limiter, const char *subject, const char *name,
                     int64_t per_minute);
