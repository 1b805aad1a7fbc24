// SPDX-License-Identifier: Apache-2.0
// Token buckets shared by all instances. Each loop decides immediately, from its own buckets, and
// soon reports admitted calls to Redis, whose reply includes those of all others. So a limit may be
// exceeded by what loops admit before they learn of each other; the excess is deducted later. While
// Redis is down, each loop enforces the limit on its own. All on the loop's thread.
#pragma once

#include "base/loop.h"
#include "cache/cache.h"

struct limiter;

struct limiter_options {
    int64_t settle_ms; // maximum delay until calls are reported to Redis
    int64_t idle_ms;   // a bucket that has been full for this long may be replaced
    int buckets_max;   // beyond it, the least recently used bucket is dropped
};

// `cache` NULL: the buckets are local to this loop. The limiter must outlive loop_run(), and be
// freed after the cache.
NODISCARD int limiter_new(struct loop *loop, struct cache *cache,
                          const struct limiter_options *options, struct limiter **ret_limiter);
void limiter_free(struct limiter *limiter);

// Takes one call from the bucket of `subject` (an id) and `name` (a short static text), which holds
// `per_minute` calls and refills within a minute. Returns 0, or the number of whole seconds until a
// call is available.
int64_t limiter_take(struct limiter *limiter, const char *subject, const char *name,
                     int64_t per_minute);

// Likewise for `count` units at once (0: only checks). They are admitted as a whole if there is
// room for one; the excess is deducted later.
int64_t limiter_take_many(struct limiter *limiter, const char *subject, const char *name,
                          int64_t per_minute, int64_t count);

// Likewise for one call of a bucket that holds `burst` calls and refills by one a second.
int64_t limiter_take_burst(struct limiter *limiter, const char *subject, const char *name,
                           int64_t burst);
