// SPDX-License-Identifier: Apache-2.0
// Moves members' cursors in Postgres, in batches by group commit.
#include "marker_internal.h"

#include "base/check.h"
#include "base/clock.h"
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
    "SELECT l FROM unnest(members_locked($1, $2)) WITH ORDINALITY AS m (l, n) ORDER BY n",
};

enum { RETRY_MAX_MS = 5000 };

static void batch_answer(struct mark_batch *batch, const struct result *result)
{
    struct settling *settling = settling_new(batch->marker, batch->outbox_id, result_rows(result));

    for (int row = 0; row < result_rows(result); row++) {
        int index = (int)result_int(result, row, COLUMN_ITEM);
        ASSERT(index >= 0 && index < batch->count && batch->marks[index]);
        struct mark *mark = TAKE(batch->marks[index]);
        if (!settling)
            mark->fn(mark->arg, -ERROR_MEMORY, NULL);
        else
            settling_add(settling, mark, result, row);
    }
    if (settling)
        settling_send(settling);
}

// Retries unanswered marks until their deadline (a mark may be repeated); otherwise they get `r`.
static void batch_give_up(struct mark_batch *batch, int r, bool repeat)
{
    struct group *group = batch->marker->group;
    int64_t now_ms = clock_monotonic_ms();

    for (int i = batch->count - 1; i >= 0; i--) {
        struct mark *mark = TAKE(batch->marks[i]);
        if (!mark)
            continue;
        if (!repeat || mark->deadline_ms < now_ms)
            mark->fn(mark->arg, r, NULL);
        else if (r == -ERROR_UNAVAILABLE)
            group_retry(group, &mark->item);
        else
            group_retry_alone(group, &mark->item);
    }
}

static void key_write(char *key, const struct mark *mark)
{
    snprintf(key, ASIDE_KEY_SIZE, "%s %s", mark->channel_id, mark->actor->user_id);
}

// Queues a mark behind those that wait for the same row. At most half of the queue may wait this
// way.
static void mark_put_aside(struct marker *marker, struct mark *mark)
{
    char key[ASIDE_KEY_SIZE];

    if (aside_waiting(marker->aside) >= marker->options.queue_max / 2) {
        mark->fn(mark->arg, -ERROR_BUSY, NULL);
        return;
    }
    metric_add(METRIC_STORE_LOCKED, 1);
    key_write(key, mark);
    aside_add(marker->aside, key, &mark->item.link);
}

static void batch_leave(struct mark_batch *batch)
{
    struct marker *marker = batch->marker;
    char key[ASIDE_KEY_SIZE];
    int count = batch->count;

    snprintf(key, sizeof key, "%s", batch->aside_key);
    batch->aside_key[0] = '\0';
    batch->count = 0;
    if (key[0] == '\0')
        group_done(marker->group, count);
    else if (marker->aside)
        aside_done(marker->aside, key);
}

static void on_locked(void *arg, const struct store_outcome *outcome)
{
    struct mark_batch *batch = CAST(mark_batch, arg);
    bool any = false;

    for (int i = 0; outcome->r == 0 && i < batch->count; i++)
        if (result_bool(outcome->result, i, 0)) {
            any = true;
            mark_put_aside(batch->marker, TAKE(batch->marks[i]));
        }
    batch_give_up(batch, any ? -ERROR_UNAVAILABLE : -ERROR_BUSY, true);
    batch_leave(batch);
}

static void channels_add(struct params *params, const struct mark_batch *batch)
{
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->marks[i]->channel_id);
    params_close_array(params);
}

static void callers_add(struct params *params, const struct mark_batch *batch)
{
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->marks[i]->actor->user_id);
    params_close_array(params);
}

// A row was locked for too long: sets aside the marks that need it.
static void batch_locked(struct mark_batch *batch)
{
    struct params params = {0};

    channels_add(&params, batch);
    callers_add(&params, batch);
    store_call(batch->marker->store, STORE_ASIDE, &MEMBERS_LOCKED, &params, on_locked, batch);
}

// The single mark of a batch that was set aside keeps waiting.
static void batch_again(struct mark_batch *batch)
{
    struct mark *mark = TAKE(batch->marks[0]);

    aside_again(batch->marker->aside, batch->aside_key, &mark->item.link);
    batch->aside_key[0] = '\0';
    batch->count = 0;
}

static void batch_committed(void *arg, const struct store_outcome *outcome)
{
    struct mark_batch *batch = CAST(mark_batch, arg);

    if (outcome->locked && batch->aside_key[0] != '\0') {
        batch_again(batch);
        return;
    }
    if (outcome->locked) {
        batch_locked(batch);
        return;
    }
    if (outcome->r == 0)
        batch_answer(batch, outcome->result);
    else if (outcome->r == -ERROR_UNAVAILABLE)
        batch_give_up(batch, outcome->r, outcome->unknown);
    else
        batch_give_up(batch, outcome->r, batch->count > 1);
    batch_leave(batch);
}

static void batch_params(struct params *params, const struct mark_batch *batch)
{
    params_text(params, batch->outbox_id);
    params_open_int_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_int(params, i);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->marks[i]->actor->workspace_id);
    params_close_array(params);
    callers_add(params, batch);
    channels_add(params, batch);
    params_open_int_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_int(params, batch->marks[i]->ts);
    params_close_array(params);
    params_open_int_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_int(params, batch->marks[i]->epoch);
    params_close_array(params);
}

static void outbox_id_next(struct marker *marker, char *ret_id)
{
    marker->batch_number++;
    snprintf(ret_id, OUTBOX_ID_SIZE, "%s-%" PRIx64, marker->name, marker->batch_number);
}

// An unused batch with a number from `first` to `end` - 1; NULL: none.
static struct mark_batch *batch_free(struct marker *marker, int first, int end)
{
    for (int i = first; i < end; i++)
        if (marker->batches[i].count == 0)
            return &marker->batches[i];
    return NULL;
}

static void batch_send(struct mark_batch *batch, enum store_lane lane)
{
    struct marker *marker = batch->marker;
    struct params params = {0};

    ASSERT(batch->count > 0);
    outbox_id_next(marker, batch->outbox_id);
    batch_params(&params, batch);
    store_call(marker->store, lane, &MARK_BATCH, &params, batch_committed, batch);
}

// Whether the mark needs a row that others already wait for.
static bool mark_waits(const struct marker *marker, const struct mark *mark)
{
    char key[ASIDE_KEY_SIZE];

    if (aside_is_empty(marker->aside))
        return false;
    key_write(key, mark);
    return aside_holds(marker->aside, key);
}

static int group_send(void *arg, struct group_item *const *items, int count)
{
    struct marker *marker = CAST(marker, arg);
    struct mark_batch *batch = batch_free(marker, 0, BATCHES_IN_WORK);
    ASSERT(batch); // the group never exceeds its depth

    for (int i = 0; i < count; i++) {
        struct mark *mark = CAST(mark, items[i]);
        if (mark_waits(marker, mark))
            mark_put_aside(marker, mark);
        else
            batch->marks[batch->count++] = mark;
    }
    if (batch->count > 0)
        batch_send(batch, STORE_MARK);
    return batch->count;
}

static void mark_try(void *arg, const char *key, struct list *item)
{
    struct marker *marker = CAST(marker, arg);
    struct mark *mark = LIST_ITEM(item, struct mark, item.link);
    struct mark_batch *batch = batch_free(marker, BATCHES_IN_WORK, BATCHES_MAX);

    if (mark->deadline_ms < clock_monotonic_ms()) {
        aside_next(marker->aside, key);
        mark->fn(mark->arg, -ERROR_BUSY, NULL);
        return;
    }
    if (!batch) {
        aside_again(marker->aside, key, item);
        return;
    }
    batch->marks[0] = mark;
    batch->count = 1;
    snprintf(batch->aside_key, sizeof batch->aside_key, "%s", key);
    batch_send(batch, STORE_ASIDE);
}

static void mark_return(void *arg, struct list *item)
{
    struct marker *marker = CAST(marker, arg);
    struct mark *mark = LIST_ITEM(item, struct mark, item.link);

    if (marker->aside)
        group_retry(marker->group, &mark->item);
    else
        mark->fn(mark->arg, -ERROR_UNAVAILABLE, NULL);
}

static int batches_make(struct marker *marker, int batch_max)
{
    int r = 0;

    for (int i = 0; i < BATCHES_MAX; i++) {
        struct mark_batch *batch = &marker->batches[i];
        batch->tag = TAG(mark_batch);
        batch->marker = marker;
        batch->marks = calloc((size_t)batch_max, sizeof(struct mark *));
        if (!batch->marks)
            r = -ERROR_MEMORY;
    }
    return r;
}

int marker_new(struct loop *loop, struct store *store, struct cache *cache,
               const struct marker_options *options, struct marker **ret_marker)
{
    struct marker *marker = TAGGED_NEW(marker);
    int batch_max = options->batch_max;
    int queue_max = options->queue_max;

    if (!marker)
        return -ERROR_MEMORY;
    marker->options = *options;
    marker->store = store;
    marker->cache = cache;
    id_make('M', marker->name);
    int r = batches_make(marker, batch_max);
    if (r == 0)
        r = group_new(
            loop,
            &(struct group_limits){.depth = BATCHES_IN_WORK,
                                   .batch_max = batch_max,
                                   .batch_bytes = (size_t)batch_max * sizeof(struct mark),
                                   .queue_max = queue_max,
                                   .queue_bytes = (size_t)queue_max * sizeof(struct mark)},
            group_send, marker, &marker->group);
    if (r == 0)
        r = aside_new(loop, mark_try, mark_return, marker, &marker->aside);
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
        aside_free(TAKE(marker->aside));
}

void marker_free(struct marker *marker)
{
    if (!marker)
        return;
    marker_finish(marker);
    group_free(marker->group);
    for (int i = 0; i < BATCHES_MAX; i++)
        free(marker->batches[i].marks);
    TAGGED_FREE(marker);
}

int marker_mark(struct marker *marker, struct mark *mark)
{
    ASSERT(mark->fn && mark->actor && mark->channel_id);
    mark->tag = TAG(mark);
    mark->deadline_ms = clock_monotonic_ms() + RETRY_MAX_MS;
    mark->item.bytes = sizeof *mark;
    mark->item.user_id = mark->actor->user_id;
    int r = group_add(marker->group, &mark->item);
    metric_add(METRIC_MARK_QUEUE_FULL, r == -ERROR_BUSY);
    return r;
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
    return group_waiting(marker->group) + (marker->aside ? aside_waiting(marker->aside) : 0);
}
