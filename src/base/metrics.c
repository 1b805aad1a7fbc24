// SPDX-License-Identifier: Apache-2.0
// Counters and gauges, and their output in Prometheus' text format.
#include "base/metrics.h"
#include "base/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/version.h"

#include "metrics_internal.h"

static const struct {
    const char *type;
    const char *name;
    const char *label;
    const char *help;
} rows[METRIC_MAX] = {
#define METRICS_ROW(id, type, name, label, help) [METRIC_##id] = {#type, name, label, help},
    METRICS_TABLE(METRICS_ROW)
#undef METRICS_ROW
};

// One cache line each, so that loops do not slow each other down (false sharing).
static struct {
    _Alignas(64) _Atomic int64_t value;
} values[METRIC_MAX];

void metric_add(enum metric metric, int64_t amount)
{
    ASSERT((unsigned)metric < METRIC_MAX);
    atomic_fetch_add_explicit(&values[metric].value, amount, memory_order_relaxed);
}

void metric_set(enum metric metric, int64_t value)
{
    ASSERT((unsigned)metric < METRIC_MAX);
    atomic_store_explicit(&values[metric].value, value, memory_order_relaxed);
}

int64_t metric_value(enum metric metric)
{
    return atomic_load_explicit(&values[metric].value, memory_order_relaxed);
}

// Rows of the same metric name are adjacent in the table; the first one holds the help text.
static void print_rows(struct buffer *out)
{
    for (int i = 0; i < METRIC_MAX; i++) {
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
            metrics_print_head(out, rows[i].name, rows[i].type, rows[i].help);
        buffer_append_text(out, rows[i].name);
        if (rows[i].label[0])
            buffer_append_format(out, "{%s}", rows[i].label);
        buffer_append_format(out, " %lld\n", (long long)metric_value((enum metric)i));
    }
}

static const struct {
    const char *name;
    const char *label;
    const char *help;
} series_rows[METRIC_SERIES_MAX] = {
#define METRICS_ROW(id, name, label, help) [METRIC_SERIES_##id] = {name, label, help},
    METRIC_SERIES_TABLE(METRICS_ROW)
#undef METRICS_ROW
};

// The value plus one; 0: no value.
static _Atomic int64_t series_values[METRIC_SERIES_MAX][METRIC_SERIES_SIZE];

static void series_store(enum metric_series series, int index, int64_t value)
{
    ASSERT((unsigned)series < METRIC_SERIES_MAX && index >= 0);
    if (index < METRIC_SERIES_SIZE)
        atomic_store_explicit(&series_values[series][index], value, memory_order_relaxed);
}

void metric_series_set(enum metric_series series, int index, int64_t value)
{
    series_store(series, index, value + 1);
}

void metric_series_clear(enum metric_series series, int index)
{
    series_store(series, index, 0);
}

static void print_series(struct buffer *out)
{
    for (int i = 0; i < METRIC_SERIES_MAX; i++) {
        metrics_print_head(out, series_rows[i].name, "gauge", series_rows[i].help);
        for (int index = 0; index < METRIC_SERIES_SIZE; index++) {
            int64_t value =
                atomic_load_explicit(&series_values[i][index], memory_order_relaxed) - 1;
            if (value >= 0)
                buffer_append_format(out, "%s{%s=\"%d\"} %lld\n", series_rows[i].name,
                                     series_rows[i].label, index, (long long)value);
        }
    }
}

static int64_t resident_bytes(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static long long descriptors_max(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : (long long)limit.rlim_cur;
}

static void print_process(struct buffer *out)
{
    metrics_print_head(out, "tidings_build_info", "gauge", "The version that runs");
    buffer_append_text(out, "tidings_build_info{version=\"" TIDINGS_VERSION "\"} 1\n");
    metrics_print_head(out, "process_resident_memory_bytes", "gauge", "Resident memory");
    buffer_append_format(out, "process_resident_memory_bytes %lld\n", (long long)resident_bytes());
    metrics_print_head(out, "process_max_fds", "gauge", "Files that may be open at a time");
    buffer_append_format(out, "process_max_fds %lld\n", descriptors_max());
}

void metrics_print(struct buffer *out)
{
    print_process(out);
    print_rows(out);
    print_series(out);
    metrics_print_times(out);
    metrics_print_requests(out);
}
