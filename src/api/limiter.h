// SPDX-License-Identifier: Apache-2.0
// Token buckets that all instances share. Each loop decides at once, by buckets of its own, and
// soon after reports to Redis what it let through; the answer tells what all others let through. So
// the sum may exceed a limit by what loops let through before they learn of each other; that is
// deducted afterwards. While Redis is away each loop enforces the limit by itself. All on the
// loop's thread.
#pragma once

#include "base/loop.h"
#include "cache/cache.h"

struct limiter;

struct limiter_options {
    int64_t settle_ms; // at least this often calls are reported to Redis
    int64_t idle_ms;   // a bucket that has been full for so long makes room for new ones
    int buckets_max;   // beyond, the least recently used bucket is dropped
};

// `cache` may be NULL: the buckets are then this loop's alone. Must outlive loop_run(), and be
// freed after the cache.
NODISCARD int limiter_new(struct loop *loop, struct cache *cache,
                          const struct limiter_options *options, struct limiter **ret_limiter);
void limiter_free(struct limiter *limiter);

// Takes one call out of the bucket of `subject` (an id) and `name` (short static text), which holds
// `per_minute` calls and fills up within a minute. Returns 0, or the whole seconds after which a
// call will be available.
int64_t limiter_take(struct limiter *limiter, const char *subject, const char *name,
                     int64_t per_minute);

// The same for `count` units at once (0: only asks). They are let through whole while there is room
// for one: what they are too many by is missing later.
int64_t limiter_take_many(struct limiter *limiter, const char *subject, const char *name,
                          int64_t per_minute, int64_t count);
