// SPDX-License-Identifier: Apache-2.0
// Reads a channel, its viewer's membership and unread state in one statement for many callers, by
// group commit.
#include "channel_state.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"

#include <stdlib.h>

enum { BATCHES_IN_WORK = 2, BATCH_MAX = 64 };

// A statement for a single row is planned faster.
static const struct statement ONE = {
    "channel_state",
    "SELECT " CHANNEL_STATE_SELECT("0", "$2") " FROM channels c" CHANNEL_STATE_MEMBER(
        "$2") " WHERE c.id = $3 AND " CHANNEL_STATE_SEEN("$1"),
};
static const struct statement MANY = {
    "channel_states",
    "SELECT " CHANNEL_STATE_SELECT(
        "a.item - 1", "a.viewer") " FROM unnest($1, $2, $3) WITH ORDINALITY AS a (workspace, "
                                  "viewer, channel, item)"
                                  " JOIN channels c ON c.id = a.channel" CHANNEL_STATE_MEMBER(
                                      "a.viewer") " WHERE " CHANNEL_STATE_SEEN("a.workspace"),
};

struct channel_states {
    uint32_t tag;
    struct store *store;
    struct group *group;
};

// Calls in flight; NULL: answered.
struct info_batch {
    uint32_t tag;
    struct channel_states *states;
    int count;
    struct channel_state_call *calls[BATCH_MAX];
};

static void call_answer(struct channel_state_call *call, int r, const struct result *result,
                        int row)
{
    call->fn(call->arg, r, result, row);
}

static void rows_answer(struct info_batch *batch, const struct result *result)
{
    for (int row = 0; row < result_rows(result); row++) {
        int64_t item = result_int(result, row, STATE_ITEM);
        ASSERT(item >= 0 && item < batch->count && batch->calls[item]);
        call_answer(TAKE(batch->calls[item]), 0, result, row);
    }
}

static void batch_answer(void *arg, const struct store_outcome *outcome)
{
    struct info_batch *batch = CAST(info_batch, arg);

    if (outcome->r == 0)
        rows_answer(batch, outcome->result);
    for (int i = 0; i < batch->count; i++)
        if (batch->calls[i])
            call_answer(batch->calls[i], outcome->r, outcome->result, -1);
    group_done(batch->states->group, batch->count);
    TAGGED_FREE(batch);
}

static void one_params(struct params *params, const struct channel_state_call *call)
{
    params_text(params, call->viewer->workspace_id);
    params_text(params, call->viewer->user_id);
    params_text(params, call->channel_id);
}

static void many_params(struct params *params, const struct info_batch *batch)
{
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->calls[i]->viewer->workspace_id);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->calls[i]->viewer->user_id);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->calls[i]->channel_id);
    params_close_array(params);
}

static int batch_send(void *arg, struct group_item *const *items, int count)
{
    struct channel_states *states = CAST(channel_states, arg);
    struct info_batch *batch = malloc(sizeof *batch);
    struct params params = {0};

    for (int i = 0; i < count; i++) {
        struct channel_state_call *call = CAST(channel_state_call, items[i]);
        if (!batch)
            call_answer(call, -ERROR_MEMORY, NULL, -1);
        else
            batch->calls[i] = call;
    }
    if (!batch)
        return 0;
    batch->tag = TAG(info_batch);
    batch->states = states;
    batch->count = count;
    if (count == 1)
        one_params(&params, batch->calls[0]);
    else
        many_params(&params, batch);
    store_call(states->store, STORE_READ, count == 1 ? &ONE : &MANY, &params, batch_answer, batch);
    return count;
}

int channel_states_new(struct loop *loop, struct store *store, int queue_max,
                       struct channel_states **ret_states)
{
    struct channel_states *states = TAGGED_NEW(channel_states);

    if (!states)
        return -ERROR_MEMORY;
    states->store = store;
    const struct group_limits limits = {
        .depth = BATCHES_IN_WORK,
        .batch_max = BATCH_MAX,
        .batch_bytes = BATCH_MAX * sizeof(struct channel_state_call),
        .queue_max = queue_max,
        .queue_bytes = (size_t)queue_max * sizeof(struct channel_state_call),
    };
    int r = group_new(loop, &limits, batch_send, states, &states->group);
    if (r < 0) {
        TAGGED_FREE(states);
        return r;
    }
    *ret_states = states;
    return 0;
}

void channel_states_free(struct channel_states *states)
{
    if (!states)
        return;
    group_free(states->group);
    TAGGED_FREE(states);
}

int channel_state_read(struct channel_states *states, struct channel_state_call *call)
{
    call->tag = TAG(channel_state_call);
    call->item.bytes = sizeof *call;
    call->item.user_id = call->viewer->user_id;
    int r = group_add(states->group, &call->item);
    metric_add(METRIC_INFO_QUEUE_FULL, r == -ERROR_BUSY);
    return r;
}
