// SPDX-License-Identifier: Apache-2.0
// Every latency of a run, kept as microseconds, so that percentiles are exact.
#ifndef TIDINGS_BENCH_SAMPLES_H
#define TIDINGS_BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

struct samples {
    uint32_t *us;
    size_t count;
    size_t room;
};

void samples_add(struct samples *samples, uint64_t ns);

// Prints `"<name>count":…,"<name>p50_ms":…,"<name>p99_ms":…,"<name>max_ms":…`; sorts what it has.
void samples_print(struct samples *samples, const char *name);

void samples_done(struct samples *samples);

#endif
