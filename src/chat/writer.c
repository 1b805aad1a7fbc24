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
    "SELECT ts, seq, ord, posts, is_private, parent_user FROM post_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,"
    " $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)",
};
static const struct statement POST_CHECK = {
    "post_check",
    "SELECT error, duplicate_ts FROM post_check($1, $2, $3, $4, $5, $6)",
};
static const struct statement POST_BATCH_FIND = {
    "post_batch_find",
    "SELECT ts, seq FROM post_batch_find($1, $2)",
};

// How long a post whose commit may or may not have happened is looked for before its author is told "try again".
enum { UNKNOWN_MAX_MS = 10000, LOOK_AGAIN_MS = 100 };

// Rows are in the order of the batch's posts.
enum { COLUMN_TS, COLUMN_SEQ, COLUMN_ORD, COLUMN_POSTS, COLUMN_PRIVATE, COLUMN_PARENT };
enum { CHECK_ERROR, CHECK_DUPLICATE_TS };

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
    writer_event_name(event, post);
    event->head = (struct event_head){.seq = seq, .ord = result_int(result, row, COLUMN_ORD)};
    return event;
}

// The events of the batch; false when they must be read back: memory was short, or replies are among them (they leave a
// head alone that only the tables know).
static bool batch_events(struct writer *writer, const struct result *result)
{
    bool complete = !writer->has_replies;
    int count = 0;

    while (complete && count < writer->count) {
        writer->events[count] = event_of(writer->batch[count], result, count);
        complete = writer->events[count] != NULL;
        count += complete;
    }
    while (!complete && count > 0)
        event_unref(TAKE(writer->events[--count]));
    return complete;
}

// Tells the log of what was committed.
static void batch_tell(struct writer *writer, const struct result *result)
{
    size_t count = batch_events(writer, result) ? (size_t)writer->count : 0;

    writer->told(writer->arg, writer->batch_id, writer->events, count);
    for (size_t i = 0; i < count; i++)
        event_unref(TAKE(writer->events[i]));
}

static void batch_answer(struct writer *writer, const struct result *result)
{
    metric_add(METRIC_MESSAGES_POSTED, writer->count);
    for (int i = 0; i < writer->count; i++)
        post_answer(writer, i,
                    &(struct post_outcome){.ts = result_int(result, i, COLUMN_TS),
                                           .seq = result_int(result, i, COLUMN_SEQ),
                                           .parent_user = result_text(result, i, COLUMN_PARENT)});
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
    if (result_rows(outcome->result) != writer->count) { // not committed
        batch_repeat(writer, false);
        return;
    }
    writer->told(writer->arg, writer->batch_id, NULL, 0);
    for (int i = 0; i < writer->count; i++)
        post_answer(writer, i,
                    &(struct post_outcome){.ts = result_int(outcome->result, i, 0),
                                           .seq = result_int(outcome->result, i, 1),
                                           .parent_user = ""});
    metric_add(METRIC_MESSAGES_POSTED, writer->count);
    batch_end(writer, -ERROR_INTERNAL);
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

// Answers those that may not be posted or are there already; the others go again.
static void batch_checked(void *arg, const struct store_outcome *outcome)
{
    struct writer *writer = arg;

    if (outcome->r < 0) {
        batch_end(writer, outcome->r);
        return;
    }
    for (int i = 0; i < writer->count; i++) {
        const char *error = result_text(outcome->result, i, CHECK_ERROR);
        struct post_outcome duplicate = {.ts = result_int(outcome->result, i, CHECK_DUPLICATE_TS),
                                         .is_duplicate = true,
                                         .parent_user = ""};
        if (error[0] != '\0') {
            post_fail(writer, i, error_from_code(error));
        } else if (duplicate.ts != 0) {
            metric_add(METRIC_MESSAGES_DUPLICATE, 1);
            post_answer(writer, i, &duplicate);
        }
    }
    batch_repeat(writer, false);
}

// Some post of the batch may not be posted: asks which.
static void batch_check(struct writer *writer)
{
    struct params params = {0};

    writer_check_params(&params, writer->batch, writer->count);
    store_call(writer->store, STORE_POST, &POST_CHECK, &params, batch_checked, writer);
}

static void batch_committed(void *arg, const struct store_outcome *outcome)
{
    struct writer *writer = arg;

    if (outcome->unknown) {
        metric_add(METRIC_POST_UNKNOWN, 1);
        writer->look_until_ms = clock_monotonic_ms() + UNKNOWN_MAX_MS;
        batch_look(writer);
    } else if (outcome->r == 0 && result_rows(outcome->result) == writer->count) {
        metric_add(METRIC_POST_BATCHES, 1);
        batch_tell(writer, outcome->result);
        batch_answer(writer, outcome->result);
    } else if (outcome->r == -ERROR_REFUSED) {
        batch_check(writer);
    } else if (outcome->r != -ERROR_UNAVAILABLE && writer->count > 1) {
        metric_add(METRIC_POST_BATCHES_SPLIT, 1);
        batch_repeat(writer, true);
    } else {
        batch_end(writer, outcome->r < 0 ? outcome->r : -ERROR_INTERNAL);
    }
}

// Takes the items into the batch, but for those whose key is in it already: they find what that one made.
static void batch_take(struct writer *writer, struct group_item *const *items, int count)
{
    writer->count = 0;
    for (int i = 0; i < count; i++) {
        struct post *post = (struct post *)(void *)items[i];
        bool twice = false;
        for (int k = 0; post->key != NULL && k < writer->count && !twice; k++)
            twice = writer_same_key(writer->batch[k], post);
        if (twice)
            group_retry(writer->group, &post->item);
        else
            writer->batch[writer->count++] = post;
    }
}

static void batch_send(void *arg, struct group_item *const *items, int count)
{
    struct writer *writer = arg;
    struct params params = {0};

    batch_take(writer, items, count);
    writer->batch_number++;
    snprintf(writer->batch_id, sizeof writer->batch_id, "%s-%" PRIx64, writer->name, writer->batch_number);
    int r = writer_batch_params(&params, writer->batch_id, writer->batch, writer->count);
    writer->has_replies = r > 0;
    if (r < 0)
        params.bytes.failed = true; // answered as any call whose parameters do not fit
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
