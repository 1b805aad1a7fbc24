// SPDX-License-Identifier: Apache-2.0
#include "chat/writer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "chat/frame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "writer_internal.h"

static const struct statement POST_BATCH = {
    "post_batch",
    "SELECT item, error, ts, seq, ord, posts, is_private, parent_user, is_duplicate"
    " FROM post_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
};
static const struct statement POST_BATCH_FIND = {
    "post_batch_find",
    "SELECT item, ts, seq FROM post_batch_find($1, $2)",
};

// How long a post whose commit may or may not have happened is looked for before its author is told "try again".
enum { UNKNOWN_MAX_MS = 10000, LOOK_AGAIN_MS = 100 };

enum { COLUMN_ITEM, COLUMN_ERROR, COLUMN_TS, COLUMN_SEQ, COLUMN_ORD, COLUMN_POSTS, COLUMN_PRIVATE, COLUMN_PARENT, COLUMN_DUPLICATE };

static void post_answer(struct writer *writer, int index, const struct post_outcome *outcome)
{
    struct post *post = writer->batch[index];

    writer->batch[index] = NULL;
    post->fn(post->arg, outcome);
}

static void post_fail(struct writer *writer, int index, int r)
{
    post_answer(writer, index, &(struct post_outcome){.r = r, .parent_user = ""});
}

// Ends the batch in work: whatever was not answered gets `r`.
static void batch_end(struct writer *writer, int r)
{
    for (int i = 0; i < writer->count; i++)
        if (writer->batch[i] != NULL)
            post_fail(writer, i, r);
    writer->count = 0;
    group_done(writer->group);
}

static void post_requeue(struct writer *writer, int index, bool alone)
{
    struct post *post = writer->batch[index];

    writer->batch[index] = NULL;
    if (alone)
        group_retry_alone(writer->group, &post->item);
    else
        group_retry(writer->group, &post->item);
}

static struct event *event_of(const struct post *post, const struct result *result, int row)
{
    int64_t ts = result_int(result, row, COLUMN_TS);
    int64_t seq = result_int(result, row, COLUMN_SEQ);
    struct message message = {
        .ts = ts,
        .seq = seq,
        .user_id = post->actor->user_id,
        .bot_id = post->actor->bot_id,
        .subtype = "",
        .text = post->text,
        .text_length = post->text_length,
        .extra = post->extra,
        .extra_length = post->extra == NULL ? 0 : strlen(post->extra),
        .client_msg_id = post->client_msg_id == NULL ? "" : post->client_msg_id,
        .parent_user = "",
        .edited_by = "",
        .reply_users = "",
    };
    struct frame_context context = {
        .workspace_id = post->actor->workspace_id,
        .channel_id = post->channel_id,
        .is_private = result_bool(result, row, COLUMN_PRIVATE),
        .seq = seq,
        .event_ts = ts,
    };
    struct buffer frame;

    buffer_init(&frame, 4 * 1024 * 1024);
    frame_write(&frame, EVENT_POST, &context, &message);
    size_t length = frame.length;
    char *text = buffer_take_text(&frame);
    struct event *event = text == NULL ? NULL : event_new(EVENT_POST, text, length);
    if (event == NULL)
        return NULL;
    event->is_private = context.is_private;
    event->counted = true;
    event->seq = seq;
    event->event_ts = ts;
    event->ts = ts;
    event->posts = result_int(result, row, COLUMN_POSTS);
    writer_event_name(event, post);
    writer_event_head(event, post, result_int(result, row, COLUMN_ORD));
    return event;
}

// The events of the batch in the order of its items, which is that of their seqs; rows come in any. Returns how many; -1
// when they must be read back: memory was short, or replies are among them (they leave a head alone that only the tables
// know).
static int batch_events(struct writer *writer, const struct result *result)
{
    int count = 0;
    bool complete = !writer->has_replies;

    for (int row = 0; row < result_rows(result) && complete; row++) {
        int index = (int)result_int(result, row, COLUMN_ITEM);
        if (!result_is_null(result, row, COLUMN_ERROR) || result_bool(result, row, COLUMN_DUPLICATE))
            continue;
        writer->events[index] = event_of(writer->batch[index], result, row);
        complete = writer->events[index] != NULL;
    }
    for (int i = 0; i < writer->count; i++) {
        struct event *event = TAKE(writer->events[i]);
        if (event != NULL && complete)
            writer->events[count++] = event;
        else
            event_unref(event);
    }
    return complete ? count : -1;
}

static bool batch_any_committed(const struct result *result)
{
    for (int row = 0; row < result_rows(result); row++)
        if (result_is_null(result, row, COLUMN_ERROR) && !result_bool(result, row, COLUMN_DUPLICATE))
            return true;
    return false;
}

// Tells the log of what was committed.
static void batch_tell(struct writer *writer, const struct result *result)
{
    if (!batch_any_committed(result))
        return;
    int count = batch_events(writer, result);
    writer->told(writer->arg, writer->batch_id, writer->events, count < 0 ? 0 : (size_t)count);
    for (int i = 0; i < count; i++)
        event_unref(TAKE(writer->events[i]));
}

static void batch_answer(struct writer *writer, const struct result *result)
{
    for (int row = 0; row < result_rows(result); row++) {
        int index = (int)result_int(result, row, COLUMN_ITEM);
        const char *error = result_text(result, row, COLUMN_ERROR);
        assert(index >= 0 && index < writer->count && writer->batch[index] != NULL);
        if (strcmp(error, "retry") == 0) {
            post_requeue(writer, index, false);
            continue;
        }
        struct post_outcome outcome = {
            .r = error[0] == '\0' ? 0 : error_from_code(error),
            .ts = result_int(result, row, COLUMN_TS),
            .seq = result_int(result, row, COLUMN_SEQ),
            .is_duplicate = result_bool(result, row, COLUMN_DUPLICATE),
            .parent_user = result_text(result, row, COLUMN_PARENT),
        };
        if (outcome.r == 0)
            metric_add(outcome.is_duplicate ? METRIC_MESSAGES_DUPLICATE : METRIC_MESSAGES_POSTED, 1);
        post_answer(writer, index, &outcome);
    }
    batch_end(writer, -ERROR_INTERNAL);
}

static void batch_look(void *arg);

// Runs what is left of the batch again, except what waited too long already.
static void batch_repeat(struct writer *writer, bool alone)
{
    int64_t now_ms = clock_monotonic_ms();

    for (int i = writer->count - 1; i >= 0; i--) {
        if (writer->batch[i] == NULL)
            continue;
        if (writer->batch[i]->deadline_ms < now_ms)
            post_fail(writer, i, -ERROR_UNAVAILABLE);
        else
            post_requeue(writer, i, alone);
    }
    batch_end(writer, -ERROR_INTERNAL);
}

static void batch_found(void *arg, const struct store_outcome *outcome)
{
    struct writer *writer = arg;

    if (outcome->r < 0 && clock_monotonic_ms() > writer->look_until_ms) {
        batch_end(writer, -ERROR_UNAVAILABLE);
        return;
    }
    if (outcome->r < 0) {
        loop_timer_set(writer->look_again, LOOK_AGAIN_MS);
        return;
    }
    if (result_rows(outcome->result) > 0)
        writer->told(writer->arg, writer->batch_id, NULL, 0);
    for (int row = 0; row < result_rows(outcome->result); row++) {
        int index = (int)result_int(outcome->result, row, 0);
        struct post_outcome found = {
            .ts = result_int(outcome->result, row, 1),
            .seq = result_int(outcome->result, row, 2),
            .parent_user = "",
        };
        assert(index >= 0 && index < writer->count && writer->batch[index] != NULL);
        metric_add(METRIC_MESSAGES_POSTED, 1);
        post_answer(writer, index, &found);
    }
    batch_repeat(writer, false);
}

// Asks whether the batch was committed after all.
static void batch_look(void *arg)
{
    struct writer *writer = arg;
    struct params params = {0};

    params_text(&params, writer->batch_id);
    params_open_text_array(&params);
    for (int i = 0; i < writer->count; i++)
        params_element_text(&params, writer->batch[i]->channel_id, strlen(writer->batch[i]->channel_id));
    params_close_array(&params);
    store_call(writer->store, STORE_POST, &POST_BATCH_FIND, &params, batch_found, writer);
}

static void batch_committed(void *arg, const struct store_outcome *outcome)
{
    struct writer *writer = arg;

    if (outcome->unknown) {
        metric_add(METRIC_POST_UNKNOWN, 1);
        writer->look_until_ms = clock_monotonic_ms() + UNKNOWN_MAX_MS;
        batch_look(writer);
    } else if (outcome->r == 0) {
        metric_add(METRIC_POST_BATCHES, 1);
        batch_tell(writer, outcome->result);
        batch_answer(writer, outcome->result);
    } else if (outcome->r != -ERROR_UNAVAILABLE && writer->count > 1) {
        metric_add(METRIC_POST_BATCHES_SPLIT, 1);
        batch_repeat(writer, true);
    } else {
        batch_end(writer, outcome->r);
    }
}

static void batch_send(void *arg, struct group_item *const *items, int count)
{
    struct writer *writer = arg;
    struct params params = {0};

    writer->count = count;
    for (int i = 0; i < count; i++)
        writer->batch[i] = (struct post *)(void *)items[i];
    writer->batch_number++;
    snprintf(writer->batch_id, sizeof writer->batch_id, "%s-%" PRIx64, writer->name, writer->batch_number);
    writer->has_replies = writer_batch_params(&params, writer->batch_id, writer->batch, count);
    store_call(writer->store, STORE_POST, &POST_BATCH, &params, batch_committed, writer);
}

int writer_new(struct loop *loop, struct store *store, int batch_max, int queue_max,
               writer_told_fn *told, void *arg, struct writer **ret_writer)
{
    struct writer *writer = calloc(1, sizeof *writer);
    int r = -ERROR_MEMORY;

    if (writer == NULL)
        return r;
    writer->store = store;
    writer->told = told;
    writer->arg = arg;
    id_make('P', writer->name);
    writer->batch = calloc((size_t)batch_max, sizeof(struct post *));
    writer->events = calloc((size_t)batch_max, sizeof(struct event *));
    if (writer->batch == NULL || writer->events == NULL)
        goto fail;
    r = loop_timer_new(loop, batch_look, writer, &writer->look_again);
    if (r < 0)
        goto fail;
    r = group_new(loop, batch_max, queue_max, batch_send, writer, &writer->group);
    if (r < 0)
        goto fail;
    *ret_writer = writer;
    return 0;
fail:
    writer_free(writer);
    return r;
}

void writer_free(struct writer *writer)
{
    if (writer == NULL)
        return;
    loop_timer_free(writer->look_again);
    group_free(writer->group);
    free(writer->batch);
    free(writer->events);
    free(writer);
}

int writer_post(struct writer *writer, struct post *post)
{
    post->deadline_ms = clock_monotonic_ms() + UNKNOWN_MAX_MS;
    int r = group_add(writer->group, &post->item);
    if (r < 0)
        metric_add(METRIC_POST_QUEUE_FULL, 1);
    return r;
}

int writer_waiting(const struct writer *writer)
{
    return group_waiting(writer->group);
}
