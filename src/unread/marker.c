// SPDX-License-Identifier: Apache-2.0
#include "unread/marker.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/metrics.h"
#include "unread/keys.h"
#include "unread/strategy.h"

#include <assert.h>
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

// While Postgres runs one batch, another is on its way to it. In which order marks come is all the
// same.
enum { BATCHES_IN_WORK = 2, RETRY_MAX_MS = 5000, EVENT_MAX_BYTES = 16384 };
enum { COLUMN_ITEM, COLUMN_ERROR, COLUMN_CHANGED, COLUMN_VIEW };

// A batch in work; free for the next one while its count is 0.
struct batch {
    struct marker *marker;
    char outbox_id[OUTBOX_ID_SIZE];
    struct mark **marks;
    int count;
};

struct marker {
    struct store *store;
    struct cache *cache;
    struct group *group;
    marker_done_fn *done;
    void *arg;
    int singles_max;
    char name[ID_SIZE];
    uint64_t batch_number;
    struct batch batches[BATCHES_IN_WORK];
};

// A committed mark that changed something, on its way to Redis and to its author.
struct settled {
    struct mark *mark;
    struct unread_view view;
};

// One outbox row while its marks are brought to Redis.
struct settling {
    struct marker *marker;
    char outbox_id[OUTBOX_ID_SIZE];
    int64_t at_us; // when it was answered
    int pending;   // calls of Redis
    bool failed;
    int count;
    struct settled marks[];
};

static void settling_done(struct settling *settling)
{
    if (--settling->pending > 0)
        return;
    // A row that Redis has not heard of is left to the relay's polling.
    if (!settling->failed)
        settling->marker->done(settling->marker->arg, settling->outbox_id);
    free(settling);
}

static void mark_told(void *arg, int r, const struct cache_value *value)
{
    struct settling *settling = arg;

    (void)value;
    settling->failed = settling->failed || r < 0;
    settling_done(settling);
}

static void mark_publish(struct settling *settling, const struct unread_view *view)
{
    struct event *event = unread_mark_event("channel_marked", view, settling->at_us);
    CLEANUP(buffer_done) struct buffer wire;
    char topic[KEY_SIZE];

    if (!event) {
        settling->failed = true;
        return;
    }
    buffer_init(&wire, EVENT_MAX_BYTES);
    event_encode(event, &wire);
    event_unref(event);
    if (buffer_failed(&wire)) {
        settling->failed = true;
        return;
    }
    settling->pending++;
    key_user_topic(topic, view->user_id);
    cache_call(settling->marker->cache, 3, (const char *const[]){"SPUBLISH", topic, wire.data},
               (const size_t[]){8, strlen(topic), wire.length}, mark_told, settling);
}

// Redis has the marks, or is found to be away: now their authors are answered.
static void marks_settled(void *arg, int r, const struct cache_value *value)
{
    struct settling *settling = arg;

    (void)value;
    settling->failed = settling->failed || r < 0;
    for (int i = 0; i < settling->count; i++) {
        struct settled *settled = &settling->marks[i];
        if (r == 0)
            mark_publish(settling, &settled->view);
        settled->mark->fn(settled->mark->arg, 0, &settled->view);
    }
    settling_done(settling);
}

// What the channel's strategy keeps of it. Nobody waits: until it is there nothing is believed.
static void mark_keep(struct marker *marker, const struct mark *mark,
                      const struct unread_view *view)
{
    const struct strategy_ops *ops = strategy_find(view->head.strategy);

    if (!ops || !ops->on_read)
        return;
    UNZEROED struct call call;
    if (!ops->on_read(&call, view, mark->tss, mark->ts_count))
        return;
    call_end(&call);
    cache_call(marker->cache, call.count, call.texts, NULL, NULL, NULL);
}

// False: there is no memory for it.
static bool settling_call(struct settling *settling)
{
    struct member_call *calls = malloc((size_t)settling->count * sizeof *calls);
    const char **texts = NULL;
    int count;

    for (int i = 0; calls && i < settling->count; i++) {
        const struct unread_view *view = &settling->marks[i].view;
        member_call_make(&calls[i], view->user_id, view->channel_id, &view->member);
    }
    if (calls)
        texts = members_call_new(calls, settling->count, &count);
    if (texts)
        cache_call(settling->marker->cache, count, texts, NULL, marks_settled, settling);
    bool called = texts != NULL;
    free(texts);
    free(calls);
    return called;
}

// Brings what changed to Redis, in one call.
static void settling_send(struct settling *settling)
{
    if (settling->count == 0) { // then there is no row
        free(settling);
        return;
    }
    settling->pending = 1;
    if (!settling_call(settling))
        marks_settled(settling, -ERROR_MEMORY, NULL);
}

static void mark_answer(struct settling *settling, struct mark *mark, const struct result *result,
                        int row)
{
    const char *error = result_text(result, row, COLUMN_ERROR);
    struct unread_view view;

    if (error[0] != '\0') {
        mark->fn(mark->arg, error_from_code(error), NULL);
        return;
    }
    metric_add(METRIC_MARKS, 1);
    unread_view_read(result, row, COLUMN_VIEW, &view);
    if (!result_bool(result, row, COLUMN_CHANGED)) {
        mark->fn(mark->arg, 0, &view);
        return;
    }
    mark_keep(settling->marker, mark, &view);
    settling->marks[settling->count++] = (struct settled){mark, view};
}

// For the marks of so many rows.
static struct settling *settling_new(struct marker *marker, const char *outbox_id, int rows)
{
    struct settling *settling = malloc(sizeof *settling + (size_t)rows * sizeof settling->marks[0]);

    if (!settling)
        return NULL;
    *settling = (struct settling){.marker = marker, .at_us = clock_wall_us()};
    snprintf(settling->outbox_id, sizeof settling->outbox_id, "%s", outbox_id);
    return settling;
}

static void batch_answer(struct batch *batch, const struct result *result)
{
    struct settling *settling = settling_new(batch->marker, batch->outbox_id, result_rows(result));

    for (int row = 0; row < result_rows(result); row++) {
        int index = (int)result_int(result, row, COLUMN_ITEM);
        assert(index >= 0 && index < batch->count && batch->marks[index]);
        struct mark *mark = TAKE(batch->marks[index]);
        if (!settling)
            mark->fn(mark->arg, -ERROR_MEMORY, NULL);
        else
            mark_answer(settling, mark, result, row);
    }
    if (settling)
        settling_send(settling);
}

// What was not answered: once more while there is time (a mark may be repeated), else `r`.
static void batch_give_up(struct batch *batch, int r, bool repeat)
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

static void batch_committed(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = arg;

    if (outcome->r == 0)
        batch_answer(batch, outcome->result);
    else if (outcome->r == -ERROR_UNAVAILABLE)
        batch_give_up(batch, outcome->r, outcome->unknown);
    else
        batch_give_up(batch, outcome->r, batch->count > 1);
    group_done(batch->marker->group, batch->count);
    batch->count = 0;
}

static void batch_params(struct params *params, const struct batch *batch)
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
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->marks[i]->actor->user_id);
    params_close_array(params);
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, batch->marks[i]->channel_id);
    params_close_array(params);
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

static struct batch *batch_free_one(struct marker *marker)
{
    struct batch *batch = marker->batches;

    while (batch->count > 0)
        batch++;
    return batch;
}

static int batch_send(void *arg, struct group_item *const *items, int count)
{
    struct marker *marker = arg;
    struct batch *batch = batch_free_one(marker);
    struct params params = {0};

    batch->count = count;
    for (int i = 0; i < count; i++)
        batch->marks[i] = (struct mark *)(void *)items[i];
    outbox_id_next(marker, batch->outbox_id);
    batch_params(&params, batch);
    store_call(marker->store, STORE_MARK, &MARK_BATCH, &params, batch_committed, batch);
    return count;
}

static int batches_make(struct marker *marker, int batch_max)
{
    int r = 0;

    for (int i = 0; i < BATCHES_IN_WORK; i++) {
        struct batch *batch = &marker->batches[i];
        batch->marker = marker;
        batch->marks = calloc((size_t)batch_max, sizeof(struct mark *));
        if (!batch->marks)
            r = -ERROR_MEMORY;
    }
    return r;
}

int marker_new(struct loop *loop, struct store *store, struct cache *cache, int batch_max,
               int queue_max, int singles_max, marker_done_fn *done, void *arg,
               struct marker **ret_marker)
{
    struct marker *marker = calloc(1, sizeof *marker);

    if (!marker)
        return -ERROR_MEMORY;
    marker->store = store;
    marker->cache = cache;
    marker->done = done;
    marker->singles_max = singles_max;
    marker->arg = arg;
    id_make('M', marker->name);
    int r = batches_make(marker, batch_max);
    if (r == 0)
        r = group_new(loop, BATCHES_IN_WORK, batch_max, queue_max, batch_send, marker,
                      &marker->group);
    if (r < 0) {
        marker_free(marker);
        return r;
    }
    *ret_marker = marker;
    return 0;
}

void marker_free(struct marker *marker)
{
    if (!marker)
        return;
    group_free(marker->group);
    for (int i = 0; i < BATCHES_IN_WORK; i++)
        free(marker->batches[i].marks);
    free(marker);
}

int marker_mark(struct marker *marker, struct mark *mark)
{
    mark->deadline_ms = clock_monotonic_ms() + RETRY_MAX_MS;
    return group_add(marker->group, &mark->item);
}

// One markUnread or markMessages, while it is in work.
struct single {
    struct marker *marker;
    struct mark *mark;
    char outbox_id[OUTBOX_ID_SIZE];
};

static void single_committed(void *arg, const struct store_outcome *outcome)
{
    struct single *single = arg;
    struct mark *mark = single->mark;
    struct settling *settling = NULL;

    if (outcome->r == 0)
        settling = settling_new(single->marker, single->outbox_id, 1);
    if (!settling) {
        mark->fn(mark->arg, outcome->r == 0 ? -ERROR_MEMORY : outcome->r, NULL);
    } else {
        mark_answer(settling, mark, outcome->result, 0);
        settling_send(settling);
    }
    free(single);
}

// With the parameters that both begin with; NULL when the mark was answered.
static struct single *single_new(struct marker *marker, struct mark *mark, struct params *params)
{
    struct single *single = malloc(sizeof *single);

    if (!single) {
        mark->fn(mark->arg, -ERROR_MEMORY, NULL);
        return NULL;
    }
    *single = (struct single){.marker = marker, .mark = mark};
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
    store_call(marker->store, STORE_WRITE, &MARK_UNREAD, &params, single_committed, single);
}

void marker_mark_messages(struct marker *marker, struct mark *mark)
{
    struct params params = {0};
    struct single *single = single_new(marker, mark, &params);

    if (!single)
        return;
    params_open_int_array(&params);
    for (int i = 0; i < mark->ts_count; i++)
        params_element_int(&params, mark->tss[i]);
    params_close_array(&params);
    params_int(&params, marker->singles_max);
    store_call(marker->store, STORE_WRITE, &MARK_MESSAGES, &params, single_committed, single);
}

int marker_waiting(const struct marker *marker)
{
    return group_waiting(marker->group);
}
