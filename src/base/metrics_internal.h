// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/buffer.h"

#include <stdatomic.h>
#include <stdint.h>

// Duration histograms. All have the same buckets.
enum { HISTOGRAM_BUCKETS = 14 };
struct histogram {
    _Alignas(64) _Atomic int64_t counts[HISTOGRAM_BUCKETS + 1]; // the last: above all buckets
    _Atomic int64_t sum_us;
};

void histogram_add(struct histogram *histogram, int64_t duration_us);

// Prints the sum of `count` histograms under one name. `label` is "" or one label, as in
// `method="api.test"`.
void histogram_print(const struct histogram *histograms, int count, const char *name,
                     const char *label, struct buffer *out);

void metrics_print_head(struct buffer *out, const char *name, const char *type, const char *help);
void metrics_print_times(struct buffer *out);

// The request metrics of metrics_print().
void metrics_print_requests(struct buffer *out);
