// SPDX-License-Identifier: Apache-2.0
// Duration histograms, sharded by thread and summed up when read.
#include "base/check.h"
#include "base/metrics.h"

#include <stdatomic.h>

#include "metrics_internal.h"

enum { SHARDS = 16 };

static const int64_t bucket_us[HISTOGRAM_BUCKETS] = {500,     1000,    2000,    5000,    10000,
                                                     25000,   50000,   100000,  250000,  500000,
                                                     1000000, 2500000, 5000000, 10000000};
static const char *const bucket_text[HISTOGRAM_BUCKETS] = {
    "0.0005", "0.001", "0.002", "0.005", "0.01", "0.025", "0.05",
    "0.1",    "0.25",  "0.5",   "1",     "2.5",  "5",     "10"};

static const struct {
    const char *name;
    const char *help;
} rows[METRIC_TIMES_MAX] = {
#define METRICS_ROW(id, name, help) [METRIC_TIMES_##id] = {name, help},
    METRIC_TIMES_TABLE(METRICS_ROW)
#undef METRICS_ROW
};

// One shard for each of the first threads, so that loops that write a lot do not contend.
static struct histogram times[METRIC_TIMES_MAX][SHARDS];
static atomic_uint threads;
static _Thread_local unsigned thread_number; // 0: not assigned yet

void histogram_add(struct histogram *histogram, int64_t duration_us)
{
    int bucket = 0;
    while (bucket < HISTOGRAM_BUCKETS && duration_us > bucket_us[bucket])
        bucket++;
    atomic_fetch_add_explicit(&histogram->counts[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, duration_us, memory_order_relaxed);
}

void metric_time(enum metric_times kind, int64_t duration_us)
{
    ASSERT((unsigned)kind < METRIC_TIMES_MAX);
    if (thread_number == 0)
        thread_number = 1 + atomic_fetch_add(&threads, 1) % SHARDS;
    histogram_add(&times[kind][thread_number - 1], duration_us > 0 ? duration_us : 0);
}

static int64_t load(const _Atomic int64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

void histogram_print(const struct histogram *histograms, int count, const char *name,
                     const char *label, struct buffer *out)
{
    const char *comma = label[0] ? "," : "";
    const char *open = label[0] ? "{" : "", *close = label[0] ? "}" : "";
    int64_t sum_us = 0, total = 0;
    for (int i = 0; i <= HISTOGRAM_BUCKETS; i++) {
        for (int h = 0; h < count; h++)
            total += load(&histograms[h].counts[i]);
        buffer_append_format(out, "%s_bucket{%s%sle=\"%s\"} %lld\n", name, label, comma,
                             i < HISTOGRAM_BUCKETS ? bucket_text[i] : "+Inf", (long long)total);
    }
    for (int h = 0; h < count; h++)
        sum_us += load(&histograms[h].sum_us);
    buffer_append_format(out, "%s_sum%s%s%s %lld.%06lld\n", name, open, label, close,
                         (long long)(sum_us / 1000000), (long long)(sum_us % 1000000));
    buffer_append_format(out, "%s_count%s%s%s %lld\n", name, open, label, close, (long long)total);
}

void metrics_print_head(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_print_times(struct buffer *out)
{
    for (int i = 0; i < METRIC_TIMES_MAX; i++) {
        metrics_print_head(out, rows[i].name, "histogram", rows[i].help);
        histogram_print(times[i], SHARDS, rows[i].name, "", out);
    }
}
