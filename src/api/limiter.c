// SPDX-License-Identifier: Apache-2.0
// Token buckets for rate limits: each loop decides from its own copy and reports admitted calls to
// Redis.
#include "limiter.h"

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// LEASE_PART: after this fraction of a bucket's calls, they are reported without waiting for the
// timer.
enum { LEASE_PART = 32, KEY_SIZE = 96 };

static const int64_t SECOND_NS = 1000000000;
static const int64_t MINUTE_NS = 60 * SECOND_NS;

// Each call occupies the bucket for `interval_ns`; the bucket is empty when its calls extend a
// minute, or another time in which it refills, into the future.
struct bucket {
    uint32_t tag;
    char key[KEY_SIZE]; // as in Redis
    UT_hash_handle hh;
    struct list recent; // in the limiter's, most recently used last
    struct list unreported_link;
    struct limiter *limiter;
    int64_t interval_ns;
    int64_t lasts_until_ns; // of all calls admitted here and, as far as known, elsewhere
    int64_t lease;
    int64_t unreported; // admitted calls not reported to Redis yet
    int64_t reported_ns;
    bool is_reported; // reported at least once: the first report also fetches the calls of others
    bool is_reporting;
    bool dropped; // freed when the reply arrives
};

struct limiter {
    uint32_t tag;
    struct loop *loop;
    struct cache *cache;
    struct limiter_options options;
    struct bucket *buckets;
    struct list recent;
    struct list unreported;
    struct loop_timer *timer;
};

static int64_t now_ns(const struct limiter *limiter)
{
    return loop_now_us(limiter->loop) * 1000;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void bucket_report(struct bucket *bucket, cache_fn *fn)
{
    char microseconds[24];
    int64_t cost_us = (bucket->unreported * bucket->interval_ns + 999) / 1000;
    const char *texts[] = {"FCALL", "limit_take", "1", bucket->key, microseconds};

    list_remove(&bucket->unreported_link);
    bucket->unreported = 0;
    if (!cache_is_up(bucket->limiter->cache)) // no other loop reports either then
        return;
    bucket->is_reported = true;
    bucket->reported_ns = now_ns(bucket->limiter);
    if (fn)
        bucket->is_reporting = true;
    snprintf(microseconds, sizeof microseconds, "%" PRId64, cost_us);
    cache_call(bucket->limiter->cache, 5, texts, NULL, fn, bucket);
}

// Takes Redis' state if it is ahead. If Redis knows less, its data may have been lost, and the
// local state is kept.
static void bucket_reported(void *arg, int r, const struct cache_value *value)
{
    struct bucket *bucket = CAST(bucket, arg);

    bucket->is_reporting = false;
    if (bucket->dropped) {
        TAGGED_FREE(bucket);
        return;
    }
    if (r < 0)
        return;
    // Counted from the time of the report: a refusal has announced its end to the caller, and the
    // reply took a while.
    int64_t shared_ns = bucket->reported_ns + cache_value_int(value) * 1000 +
                        bucket->unreported * bucket->interval_ns;
    bucket->lasts_until_ns = later(bucket->lasts_until_ns, shared_ns);
    if (bucket->unreported >= bucket->lease)
        bucket_report(bucket, bucket_reported);
}

static void bucket_drop(struct bucket *bucket)
{
    HASH_DEL(bucket->limiter->buckets, bucket);
    metric_add(METRIC_RATE_BUCKETS, -1);
    list_remove(&bucket->recent);
    list_remove(&bucket->unreported_link);
    bucket->dropped = true;
    if (!bucket->is_reporting)
        TAGGED_FREE(bucket);
}

static bool bucket_is_idle(const struct bucket *bucket)
{
    const struct limiter *limiter = bucket->limiter;

    return bucket->unreported == 0 &&
           bucket->lasts_until_ns + limiter->options.idle_ms * 1000000 < now_ns(limiter);
}

// Makes room for one more bucket. Drops two idle ones per new one, so that their number falls to
// those recently used.
static void limiter_shrink(struct limiter *limiter)
{
    for (int i = 0; i < 2 && !list_is_empty(&limiter->recent); i++) {
        struct bucket *idle = LIST_ITEM(limiter->recent.next, struct bucket, recent);
        if (!bucket_is_idle(idle))
            break;
        bucket_drop(idle);
    }
    if (HASH_COUNT(limiter->buckets) < (unsigned)limiter->options.buckets_max)
        return;
    struct bucket *oldest = LIST_ITEM(limiter->recent.next, struct bucket, recent);
    if (oldest->unreported > 0)
        bucket_report(oldest, NULL);
    bucket_drop(oldest);
    metric_add(METRIC_RATE_BUCKETS_DROPPED, 1);
}

static struct bucket *bucket_new(struct limiter *limiter, const char *key, size_t length)
{
    limiter_shrink(limiter);
    struct bucket *bucket = TAGGED_NEW(bucket);
    if (!bucket)
        return NULL;
    memcpy(bucket->key, key, length + 1);
    bucket->limiter = limiter;
    list_init(&bucket->recent);
    list_init(&bucket->unreported_link);
    HASH_ADD(hh, limiter->buckets, key, length, bucket);
    metric_add(METRIC_RATE_BUCKETS, 1);
    return bucket;
}

static struct bucket *bucket_find(struct limiter *limiter, const char *subject, const char *name)
{
    struct bucket *bucket;
    char key[KEY_SIZE];
    int length = snprintf(key, sizeof key, "rate:{%s}:%s", subject, name);

    if (length < 0 || length >= KEY_SIZE)
        return NULL;
    HASH_FIND(hh, limiter->buckets, key, (size_t)length, bucket);
    if (!bucket)
        bucket = bucket_new(limiter, key, (size_t)length);
    if (!bucket)
        return NULL;
    list_remove(&bucket->recent);
    list_append(&limiter->recent, &bucket->recent);
    return bucket;
}

static void on_timer(void *arg)
{
    struct limiter *limiter = CAST(limiter, arg);

    LIST_FOREACH(link, &limiter->unreported)
    {
        struct bucket *bucket = LIST_ITEM(link, struct bucket, unreported_link);
        if (!bucket->is_reporting)
            bucket_report(bucket, bucket_reported);
    }
    if (!list_is_empty(&limiter->unreported))
        loop_timer_set(limiter->timer, limiter->options.settle_ms);
}

static void bucket_charge(struct bucket *bucket, int64_t count)
{
    struct limiter *limiter = bucket->limiter;

    if (!limiter->cache)
        return;
    bool is_first = bucket->unreported == 0;
    bucket->unreported += count;
    if ((bucket->unreported >= bucket->lease || !bucket->is_reported) && !bucket->is_reporting) {
        bucket_report(bucket, bucket_reported);
        return;
    }
    if (!is_first)
        return;
    if (list_is_empty(&limiter->unreported))
        loop_timer_set(limiter->timer, limiter->options.settle_ms);
    list_append(&limiter->unreported, &bucket->unreported_link);
}

// Takes `count` calls from a bucket that holds `size` calls and refills within `refill_ns`.
static int64_t bucket_take(struct bucket *bucket, int64_t size, int64_t refill_ns, int64_t count)
{
    int64_t now = now_ns(bucket->limiter);
    bucket->interval_ns = refill_ns / size;
    bucket->lease = size / LEASE_PART + 1;
    int64_t from = later(bucket->lasts_until_ns, now);
    int64_t missing = from + bucket->interval_ns - now - refill_ns;
    if (missing > 0)
        return (missing + SECOND_NS - 1) / SECOND_NS;
    bucket->lasts_until_ns = from + count * bucket->interval_ns;
    if (count > 0)
        bucket_charge(bucket, count);
    return 0;
}

int64_t limiter_take(struct limiter *limiter, const char *subject, const char *name,
                     int64_t per_minute)
{
    return limiter_take_many(limiter, subject, name, per_minute, 1);
}

int64_t limiter_take_many(struct limiter *limiter, const char *subject, const char *name,
                          int64_t per_minute, int64_t count)
{
    struct bucket *bucket = bucket_find(limiter, subject, name);

    return bucket ? bucket_take(bucket, per_minute, MINUTE_NS, count) : 0;
}

int64_t limiter_take_burst(struct limiter *limiter, const char *subject, const char *name,
                           int64_t burst)
{
    struct bucket *bucket = bucket_find(limiter, subject, name);

    return bucket ? bucket_take(bucket, burst, burst * SECOND_NS, 1) : 0;
}

int limiter_new(struct loop *loop, struct cache *cache, const struct limiter_options *options,
                struct limiter **ret_limiter)
{
    struct limiter *limiter = TAGGED_NEW(limiter);

    if (!limiter)
        return -ERROR_MEMORY;
    limiter->loop = loop;
    limiter->cache = cache;
    limiter->options = *options;
    list_init(&limiter->recent);
    list_init(&limiter->unreported);
    int r = loop_timer_new(loop, on_timer, limiter, &limiter->timer);
    if (r < 0) {
        TAGGED_FREE(limiter);
        return r;
    }
    *ret_limiter = limiter;
    return 0;
}

void limiter_free(struct limiter *limiter)
{
    if (!limiter)
        return;
    LIST_FOREACH(link, &limiter->recent)
    {
        bucket_drop(LIST_ITEM(link, struct bucket, recent));
    }
    loop_timer_free(limiter->timer);
    TAGGED_FREE(limiter);
}
