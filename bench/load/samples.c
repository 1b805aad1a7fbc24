// SPDX-License-Identifier: Apache-2.0
#include "samples.h"

#include "../common/tool.h"

#include <stdio.h>
#include <stdlib.h>

void samples_add(struct samples *samples, uint64_t ns)
{
    if (samples->count == samples->room) {
        samples->room = samples->room > 0 ? samples->room * 2 : 65536;
        samples->us = tool_grow(samples->us, samples->room * sizeof(uint32_t));
    }
    samples->us[samples->count++] = (uint32_t)(ns / 1000);
}

static int compare_us(const void *left, const void *right)
{
    uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;

    return (l > r) - (l < r);
}

// The smallest latency that `permille` of the samples do not exceed.
static double percentile_ms(const struct samples *samples, size_t permille)
{
    size_t rank = (samples->count * permille + 999) / 1000;

    if (samples->count == 0)
        return 0;
    return (double)samples->us[rank > 0 ? rank - 1 : 0] / 1000.0;
}

void samples_print(struct samples *samples, const char *name)
{
    if (samples->count > 0)
        qsort(samples->us, samples->count, sizeof(uint32_t), compare_us);
    printf("\"%scount\":%zu,\"%sp50_ms\":%.3f,\"%sp99_ms\":%.3f,\"%smax_ms\":%.3f", name,
           samples->count, name, percentile_ms(samples, 500), name, percentile_ms(samples, 990),
           name, percentile_ms(samples, 1000));
}

void samples_done(struct samples *samples)
{
    free(samples->us);
    *samples = (struct samples){0};
}
