// SPDX-License-Identifier: Apache-2.0
// The table of strategies, and their shared code.
#include "unread/strategy.h"

#include "base/check.h"
#include "unread/keys.h"

#include <stdio.h>

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

void strategy_call_begin(struct fcall *call, const char *function, const struct unread_view *view)
{
    char key[KEY_SIZE];

    fcall_begin(call, function);
    key_walk(key, view->channel_id);
    fcall_key(call, key);
    key_members(key, view->channel_id);
    fcall_key(call, key);
    if (view->head.strategy == STRATEGY_BITMAP)
        key_bitmap(key, view->channel_id);
    else
        key_unread(key, view->user_id, view->channel_id);
    fcall_key(call, key);
    fcall_int(call, view->head.generation);
    fcall_int(call, view->head.seq);
    fcall_text(call, view->user_id);
    fcall_int(call, view->member.number < 0 ? 0 : view->member.number);
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
