// SPDX-License-Identifier: Apache-2.0
// Counts requests by method and error, and measures durations by method. Rows are only added, never
// removed: readers find them without the lock that guards additions.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/metrics.h"

#include "metrics_internal.h"

enum { PAIRS_MAX = 1024, METHODS_MAX = 256, LABEL_MAX = 128 };

struct key {
    _Atomic(const char *) method; // NULL: the slot is free. Set last
    const char *error;
};

// An open-addressing hash table, at most half full.
struct table {
    struct key *keys;
    size_t size; // a power of two
    size_t used;
};

static struct key pair_keys[PAIRS_MAX];
static _Atomic int64_t pair_counts[PAIRS_MAX];
static struct key method_keys[METHODS_MAX];
static struct histogram durations[METHODS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards additions to the tables
static struct table pairs = {pair_keys, PAIRS_MAX, 0};
static struct table methods = {method_keys, METHODS_MAX, 0};

static size_t hash_text(size_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ (hash >> 29);
}

// The slot of the key, or the free slot where it belongs.
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

// Looks the key up again under the lock: another thread may have added it meanwhile.
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
    ASSERT(table->used < table->size);
    pthread_mutex_unlock(&lock);
    return place;
}

static size_t table_place(struct table *table, const char *method, const char *error)
{
    size_t place = table_find(table, method, error);
    return table_has(table, place) ? place : table_add(table, method, error);
}

void metric_request(const char *method, const char *error, int64_t duration_us)
{
    atomic_fetch_add_explicit(&pair_counts[table_place(&pairs, method, error)], 1,
                              memory_order_relaxed);
    histogram_add(&durations[table_place(&methods, method, "")], duration_us);
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

static void print_duration(struct buffer *out, size_t place)
{
    char label[LABEL_MAX];
    snprintf(label, sizeof label, "method=\"%s\"", method_keys[place].method);
    histogram_print(&durations[place], 1, "tidings_http_request_duration_seconds", label, out);
}

void metrics_print_requests(struct buffer *out)
{
    print_counts(out);
    metrics_print_head(out, "tidings_http_request_duration_seconds", "histogram", "Time to answer");
    for (size_t i = 0; i < METHODS_MAX; i++)
        if (table_has(&methods, i))
            print_duration(out, i);
}
