// SPDX-License-Identifier: Apache-2.0
// Requests by method and error, and their durations by method. Rows are only ever added: readers
// find them without a lock, under which adding is done.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/metrics.h"

#include "metrics_internal.h"

enum { PAIRS_MAX = 1024, METHODS_MAX = 256, BUCKETS_MAX = 14 };

static const int64_t bucket_us[BUCKETS_MAX] = {500,     1000,    2000,    5000,    10000,
                                               25000,   50000,   100000,  250000,  500000,
                                               1000000, 2500000, 5000000, 10000000};
static const char *const bucket_text[BUCKETS_MAX] = {"0.0005", "0.001", "0.002", "0.005", "0.01",
                                                     "0.025",  "0.05",  "0.1",   "0.25",  "0.5",
                                                     "1",      "2.5",   "5",     "10"};

struct key {
    _Atomic(const char *) method; // NULL: the place is free. Set last
    const char *error;
};

// Open addressing; a table is never filled beyond half.
struct table {
    struct key *keys;
    size_t size; // a power of two
    size_t used;
};

static struct key pair_keys[PAIRS_MAX];
static _Atomic int64_t pair_counts[PAIRS_MAX];
static struct key method_keys[METHODS_MAX];
static struct {
    _Atomic int64_t counts[BUCKETS_MAX + 1]; // the last: longer than all
    _Atomic int64_t sum_us;
} durations[METHODS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards adding to the tables
static struct table pairs = {pair_keys, PAIRS_MAX, 0};
static struct table methods = {method_keys, METHODS_MAX, 0};

static size_t hash_text(size_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ (hash >> 29);
}

// The place of the key, or the free one where it belongs.
static size_t table_find(const struct table *table, const char *method, const char *error)
{
    size_t place = hash_text(hash_text(0xcbf29ce484222325u, method), error) & (table->size - 1);
    for (;; place = (place + 1) & (table->size - 1)) {
        const struct key *key = &table->keys[place];
        const char *taken = atomic_load_explicit(&key->method, memory_order_acquire);
        if (!taken)
            return place;
        if ((taken == method || strcmp(taken, method) == 0) && strcmp(key->error, error) == 0)
            return place;
    }
}

static bool table_has(const struct table *table, size_t place)
{
    return atomic_load_explicit(&table->keys[place].method, memory_order_acquire) != NULL;
}

// Another thread may have taken the place meanwhile: it is looked for again.
static size_t table_add(struct table *table, const char *method, const char *error)
{
    pthread_mutex_lock(&lock);
    if (table->used >= table->size / 2)
        method = "other", error = error[0] ? "other" : "";
    size_t place = table_find(table, method, error);
    if (!table_has(table, place)) {
        table->keys[place].error = error;
        atomic_store_explicit(&table->keys[place].method, method, memory_order_release);
        table->used++;
    }
    assert(table->used < table->size);
    pthread_mutex_unlock(&lock);
    return place;
}

static size_t table_place(struct table *table, const char *method, const char *error)
{
    size_t place = table_find(table, method, error);
    return table_has(table, place) ? place : table_add(table, method, error);
}

static void increment(_Atomic int64_t *counter, int64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

void metric_request(const char *method, const char *error, int64_t duration_us)
{
    int bucket = 0;
    while (bucket < BUCKETS_MAX && duration_us > bucket_us[bucket])
        bucket++;
    increment(&pair_counts[table_place(&pairs, method, error)], 1);
    size_t place = table_place(&methods, method, "");
    increment(&durations[place].counts[bucket], 1);
    increment(&durations[place].sum_us, duration_us);
}

static void print_counts(struct buffer *out)
{
    buffer_append_text(out, "# HELP tidings_http_requests_total Requests answered\n"
                            "# TYPE tidings_http_requests_total counter\n");
    for (size_t i = 0; i < PAIRS_MAX; i++)
        if (table_has(&pairs, i))
            buffer_append_format(
                out, "tidings_http_requests_total{method=\"%s\",error=\"%s\"} %lld\n",
                pair_keys[i].method, pair_keys[i].error, (long long)pair_counts[i]);
}

static void print_histogram(struct buffer *out, size_t place)
{
    static const char name[] = "tidings_http_request_duration_seconds";
    const char *method = method_keys[place].method;
    long long count = 0;
    for (int i = 0; i <= BUCKETS_MAX; i++) {
        count += durations[place].counts[i];
        buffer_append_format(out, "%s_bucket{method=\"%s\",le=\"%s\"} %lld\n", name, method,
                             i < BUCKETS_MAX ? bucket_text[i] : "+Inf", count);
    }
    long long sum_us = durations[place].sum_us;
    buffer_append_format(out, "%s_sum{method=\"%s\"} %lld.%06lld\n", name, method, sum_us / 1000000,
                         sum_us % 1000000);
    buffer_append_format(out, "%s_count{method=\"%s\"} %lld\n", name, method, count);
}

void metrics_print_requests(struct buffer *out)
{
    print_counts(out);
    buffer_append_text(out, "# HELP tidings_http_request_duration_seconds Time to answer\n"
                            "# TYPE tidings_http_request_duration_seconds histogram\n");
    for (size_t i = 0; i < METHODS_MAX; i++)
        if (table_has(&methods, i))
            print_histogram(out, i);
}
