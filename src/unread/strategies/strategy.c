// SPDX-License-Identifier: Apache-2.0
// The table of strategies, and their shared code.
#include "unread/strategy.h"

#include "base/check.h"
const struct strategy_ops *strategy_find(int64_t strategy)
{
    static const struct strategy_ops *const known[STRATEGY_MAX] = {
        [STRATEGY_SEQUENCE] = &strategy_sequence,
        [STRATEGY_ZSET] = &strategy_zset,
        [STRATEGY_COUNTER] = &strategy_counter,
        [STRATEGY_BITMAP] = &strategy_bitmap,
    };

    return strategy >= 0 && strategy < STRATEGY_MAX ? known[strategy] : NULL;
}

int64_t strategy_count_take(int r, const struct cache_value *value)
{
    return r < 0 ? STRATEGY_UNKNOWN : cache_value_int(value);
}

struct counting {
    uint32_t tag;
    int64_t *next;
};

static void on_count(void *arg, int r, const struct cache_value *value)
{
    struct counting *counting = CAST(counting, arg);

    *counting->next++ = strategy_count_take(r, value);
}

int strategy_count_many(struct pipeline *pipeline, const struct unread_view *views, size_t count,
                        int64_t *ret_counts)
{
    struct counting counting = {.tag = TAG(counting), .next = ret_counts};
    struct fcall call;

    for (size_t i = 0; i < count; i++) {
        const struct strategy_ops *ops = strategy_find(views[i].head.strategy);
        if (!ops || !ops->count) {
            pipeline_add(pipeline, 1, (const char *[]){"PING"}, NULL);
            continue;
        }
        ops->count(&call, &views[i]);
        fcall_end(&call);
        pipeline_add(pipeline, call.count, call.texts, NULL);
    }
    int r = pipeline_run(pipeline, on_count, &counting);
    for (size_t i = 0; i < count; i++) {
        const struct strategy_ops *ops = strategy_find(views[i].head.strategy);
        if (!ops || !ops->count)
            ret_counts[i] = STRATEGY_UNKNOWN;
    }
    return r;
}
