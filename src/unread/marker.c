// SPDX-License-Identifier: Apache-2.0
// Moves members' cursors in Postgres, in batches by group commit.
#include "marker_internal.h"

#include "base/check.h"
#include "base/error.h"
#include "base/id.h"
#include "base/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement MARK_BATCH = {
    "mark_batch",
    "SELECT b.item, b.error, b.changed, " UNREAD_VIEW_SELECT(
        "b") " FROM mark_batch($1, $2, $3, $4, $5, $6, $7) b",
};
static const struct statement MARK_UNREAD = {
    "mark_unread",
    "SELECT 0, m.error, m.error IS NULL, " UNREAD_VIEW_SELECT(
        "(m.state)") " FROM mark_unread($1, $2, $3, $4, $5) m",
};

static const struct statement MARK_MESSAGES = {
    "mark_messages",
    "SELECT 0, m.error, m.changed, " UNREAD_VIEW_SELECT(
        "(m.state)") " FROM mark_messages($1, $2, $3, $4, $5, $6) m",
};

static const struct statement MEMBERS_LOCKED = {
    "members_locked",
    "SELECT l::integer FROM unnest(members_locked($1, $2)) WITH ORDINALITY AS m (l, n) ORDER BY n",
};

enum { RETRY_MAX_MS = 5000 };

// Batches in flight at the same time: while Postgres runs one, the next is on its way.
enum { BATCHES_IN_WORK = 2 };

static struct marker *marker_of(const struct batch *batch)
{
    return CAST(marker, batcher_arg(batch->batcher));
}

static const struct mark *mark_of(const struct batch *batch, int index)
{
    return CAST_CONST(mark, batch->items[index]);
}

static void marks_answer(struct batch *batch, const struct result *result)
{
    struct marker *marker = marker_of(batch);
    struct settling *settling =
        settling_new(marker, marker->outbox_ids[batch->number], result_rows(result));

    for (int row = 0; row < result_rows(result); row++) {
        int index = (int)result_int(result, row, COLUMN_ITEM);
        ASSERT(index >= 0 && index < batch->count && batch->items[index]);
        struct mark *mark = CAST(mark, TAKE(batch->items[index]));
        if (!settling)
            mark->fn(mark->arg, -ERROR_MEMORY, NULL);
        else
            settling_add(settling, mark, result, row);
    }
    if (settling)
        settling_send(settling);
}

// Marks may be repeated: what is unknown is sent again, and of a batch that failed each mark alone.
static void batch_answer(struct batch *batch, const struct store_outcome *outcome)
{
    if (outcome->r == 0)
        marks_answer(batch, outcome->result);
    if (outcome->unknown)
        batch_repeat(batch, false);
    else if (outcome->r < 0 && outcome->r != -ERROR_UNAVAILABLE && batch->count > 1)
        batch_repeat(batch, true);
    else
        batch_end(batch, outcome->r < 0 ? outcome->r : -ERROR_INTERNAL); // all are answered, if 0
}

static void callers_add(struct params *params, const struct batch *batch)
{
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, mark_of(batch, i)->actor->user_id);
    params_close_array(params);
}

static void channels_add(struct params *params, const struct batch *batch)
{
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, mark_of(batch, i)->channel_id);
    params_close_array(params);
}

static const struct statement *batch_locked(struct params *params, const struct batch *batch)
{
    channels_add(params, batch);
    callers_add(params, batch);
    return &MEMBERS_LOCKED;
}

static void outbox_id_next(struct marker *marker, char *ret_id)
{
    marker->batch_number++;
    snprintf(ret_id, OUTBOX_ID_SIZE, "%s-%" PRIx64, marker->name, marker->batch_number);
}

static const struct statement *batch_params(struct params *params, const struct batch *batch)
{
    struct marker *marker = marker_of(batch);
    char *outbox_id = marker->outbox_ids[batch->number];

    outbox_id_next(marker, outbox_id);
    params_text(params, outbox_id);
    params_open_int_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_int(params, i);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, mark_of(batch, i)->actor->workspace_id);
    params_close_array(params);
    callers_add(params, batch);
    channels_add(params, batch);
    params_open_int_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_int(params, mark_of(batch, i)->ts);
    params_close_array(params);
    params_open_int_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_int(params, mark_of(batch, i)->epoch);
    params_close_array(params);
    return &MARK_BATCH;
}

// A mark needs one row: of the caller's membership.
static void key_write(const struct batch_item *item, int row, char *ret_key)
{
    const struct mark *mark = CAST_CONST(mark, item);

    (void)row;
    snprintf(ret_key, ASIDE_KEY_SIZE, "%s %s", mark->channel_id, mark->actor->user_id);
}

static void item_fail(struct batch_item *item, int r)
{
    const struct mark *mark = CAST_CONST(mark, item);

    mark->fn(mark->arg, r, NULL);
}

static const struct batcher_ops ops = {
    .params = batch_params,
    .locked = batch_locked,
    .answer = batch_answer,
    .key_write = key_write,
    .fail = item_fail,
    .rows = 1,
};

static int batcher_make(struct marker *marker, struct loop *loop)
{
    size_t batch_max = (size_t)marker->options.batch_max;
    size_t queue_max = (size_t)marker->options.queue_max;

    return batcher_new(
        loop,
        &(struct batcher_options){.store = marker->store,
                                  .lane = STORE_MARK,
                                  .limits = {.depth = BATCHES_IN_WORK,
                                             .batch_max = marker->options.batch_max,
                                             .batch_bytes = batch_max * sizeof(struct mark),
                                             .queue_max = marker->options.queue_max,
                                             .queue_bytes = queue_max * sizeof(struct mark)},
                                  .wait_max_ms = RETRY_MAX_MS,
                                  .full = METRIC_MARK_QUEUE_FULL},
        &ops, marker, &marker->batcher);
}

int marker_new(struct loop *loop, struct store *store, struct cache *cache,
               const struct marker_options *options, struct marker **ret_marker)
{
    struct marker *marker = TAGGED_NEW(marker);

    if (!marker)
        return -ERROR_MEMORY;
    marker->options = *options;
    marker->store = store;
    marker->cache = cache;
    id_make('M', marker->name);
    int r = batcher_make(marker, loop);
    if (r == 0) {
        marker->outbox_ids =
            calloc((size_t)batcher_batches(marker->batcher), sizeof *marker->outbox_ids);
        r = marker->outbox_ids ? 0 : -ERROR_MEMORY;
    }
    if (r < 0) {
        marker_free(marker);
        return r;
    }
    *ret_marker = marker;
    return 0;
}

void marker_finish(struct marker *marker)
{
    if (marker)
        batcher_finish(marker->batcher);
}

void marker_free(struct marker *marker)
{
    if (!marker)
        return;
    batcher_free(marker->batcher);
    free(marker->outbox_ids);
    TAGGED_FREE(marker);
}

int marker_mark(struct marker *marker, struct mark *mark)
{
    ASSERT(mark->fn && mark->actor && mark->channel_id);
    mark->tag = TAG(mark);
    mark->item.item.bytes = sizeof *mark;
    mark->item.item.user_id = mark->actor->user_id;
    return batcher_add(marker->batcher, &mark->item);
}

// One markUnread or markMessages in flight.
struct single {
    uint32_t tag;
    struct marker *marker;
    struct mark *mark;
    char outbox_id[OUTBOX_ID_SIZE];
};

static void single_committed(void *arg, const struct store_outcome *outcome)
{
    struct single *single = CAST(single, arg);
    struct mark *mark = single->mark;
    struct settling *settling = NULL;

    if (outcome->r == 0)
        settling = settling_new(single->marker, single->outbox_id, 1);
    if (!settling) {
        mark->fn(mark->arg, outcome->r == 0 ? -ERROR_MEMORY : outcome->r, NULL);
    } else {
        settling_add(settling, mark, outcome->result, 0);
        settling_send(settling);
    }
    TAGGED_FREE(single);
}

// Creates it and adds the parameters common to both statements. NULL: the mark has been answered.
static struct single *single_new(struct marker *marker, struct mark *mark, struct params *params)
{
    struct single *single = malloc(sizeof *single);

    ASSERT(mark->fn && mark->actor && mark->channel_id);
    if (!single) {
        mark->fn(mark->arg, -ERROR_MEMORY, NULL);
        return NULL;
    }
    *single = (struct single){.tag = TAG(single), .marker = marker, .mark = mark};
    outbox_id_next(marker, single->outbox_id);
    params_text(params, single->outbox_id);
    params_text(params, mark->actor->workspace_id);
    params_text(params, mark->actor->user_id);
    params_text(params, mark->channel_id);
    return single;
}

void marker_mark_unread(struct marker *marker, struct mark *mark)
{
    struct params params = {0};
    struct single *single = single_new(marker, mark, &params);

    if (!single)
        return;
    params_int(&params, mark->ts);
    store_change(marker->store, mark->channel_id, &MARK_UNREAD, &params, single_committed, single);
}

void marker_mark_messages(struct marker *marker, struct mark *mark)
{
    struct params params = {0};
    struct single *single = single_new(marker, mark, &params);

    if (!single)
        return;
    params_open_int_array(&params);
    ASSERT(mark->tss && mark->ts_count > 0);
    for (int i = 0; i < mark->ts_count; i++)
        params_element_int(&params, mark->tss[i]);
    params_close_array(&params);
    params_int(&params, marker->options.singles_max);
    store_change(marker->store, mark->actor->user_id, &MARK_MESSAGES, &params, single_committed,
                 single);
}

int marker_waiting(const struct marker *marker)
{
    return batcher_waiting(marker->batcher);
}
