// SPDX-License-Identifier: Apache-2.0
// The writer of posts: collects them into batches, commits each batch with one statement, and
// answers every post.
#include "chat/writer.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "chat/frame.h"
#include "chat/traits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "writer_internal.h"

static const struct statement POST_BATCH_FIND = {
    "post_batch_find",
    "SELECT first_ts, first_seq FROM post_batch_find($1)",
};

enum { RECHECK_MS = 100 };

enum { ANSWERS_A_TURN = 8 };

// Batches in flight at the same time: after committing one, Postgres finds the next already
// waiting.
enum { BATCHES_IN_WORK = 2 };

// Follows the columns of enum batch_start.
enum { COLUMN_PARENTS = START_KINDS };

static int64_t start_of(const struct post_batch *posted, int index, enum batch_start kind)
{
    int64_t channel = posted->plan.places[index].channel;

    ASSERT(index < posted->plan.count && channel > 0 && channel <= posted->plan.channel_count);
    return posted->starts[kind][channel - 1];
}

static int64_t ts_of(const struct post_batch *posted, int index)
{
    return start_of(posted, index, START_TS) + posted->plan.places[index].rank;
}

static int64_t seq_of(const struct post_batch *posted, int index)
{
    return start_of(posted, index, START_SEQ) + posted->plan.places[index].rank;
}

// Reads the first `kinds` columns. False: the reply does not match the batch.
static bool starts_read(struct post_batch *posted, const struct result *result, int kinds)
{
    for (int kind = 0; kind < kinds; kind++)
        if (result_ints(result, 0, kind, posted->starts[kind], posted->plan.channel_count) !=
            posted->plan.channel_count)
            return false;
    return true;
}

static void name_copy(char *ret_name, const char *name)
{
    size_t length = strnlen(name, EVENT_ID_SIZE - 1);

    memcpy(ret_name, name, length);
    ret_name[length] = '\0';
}

static void event_name(struct event *event, const struct post *post)
{
    name_copy(event->workspace_id, post->actor->workspace_id);
    name_copy(event->channel_id, post->channel_id);
    name_copy(event->user_id, post->actor->user_id);
    name_copy(event->origin, post->origin);
}

static struct event *event_of(const struct post_batch *posted, int index)
{
    const struct post *post = post_of(posted->batch, index);
    int64_t ts = ts_of(posted, index);
    int64_t seq = seq_of(posted, index);
    struct traits traits = traits_unpack(start_of(posted, index, START_TRAITS));
    struct message message = post_message(post, ts, seq, "");
    struct frame_context context = {
        .workspace_id = post->actor->workspace_id,
        .channel_id = post->channel_id,
        .type = traits.type,
        .seq = seq,
        .event_ts = ts,
    };
    struct buffer frame;

    buffer_init(&frame, 4 * 1024 * 1024);
    frame_write(&frame, EVENT_POST, &context, &message);
    struct event *event = event_take_frame(EVENT_POST, &frame);
    if (!event)
        return NULL;
    event->channel_type = context.type;
    event->is_private = context.type != CHANNEL_PUBLIC;
    event->counted = true;
    event->seq = seq;
    event->event_ts = ts;
    event->ts = ts;
    event_name(event, post);
    event->head = (struct event_head){.seq = seq,
                                      .ord = start_of(posted, index, START_ORD) +
                                             posted->plan.places[index].ord,
                                      .strategy = traits.strategy,
                                      .generation = traits.generation};
    return event;
}

// Builds the events of the batch. False: they must be read back, because memory ran out or the
// batch contains replies (they do not move the channel's head, and only the tables know its value).
static bool batch_events(const struct post_batch *posted, struct event **ret_events)
{
    bool complete = !posted->plan.has_replies;
    int count = 0;

    while (complete && count < posted->batch->count) {
        ret_events[count] = event_of(posted, count);
        complete = ret_events[count] != NULL;
        count += complete;
    }
    while (!complete && count > 0)
        event_unref(TAKE(ret_events[--count]));
    return complete;
}

// Publishes a commit. The replies and the next batch are already on their way, since callers wait
// for those.
static void batch_publish(struct writer *writer, const struct post_batch *posted)
{
    struct event **events = publication_next(&writer->publication);
    size_t count = batch_events(posted, events) ? (size_t)posted->batch->count : 0;

    publication_commit(&writer->publication, posted->id, count);
}

// The authors of the threads' roots, separated by commas.
static void parents_read(struct post_batch *posted, const char *parents)
{
    for (int i = 0; posted->plan.has_replies && i < posted->batch->count; i++) {
        size_t length = strcspn(parents, ",");
        snprintf(posted->parents[i], EVENT_ID_SIZE, "%.*s", (int)length, parents);
        parents += length + (parents[length] == ',');
    }
}

static void answers_write(struct writer *writer, int max)
{
    struct post_batch *posted = writer->answering;

    if (!posted)
        return;
    for (; posted->answered < posted->batch->count && max > 0; max--) {
        int i = posted->answered++;
        batch_post_answer(posted->batch, i,
                          &(struct post_outcome){.ts = ts_of(posted, i),
                                                 .seq = seq_of(posted, i),
                                                 .parent_user = posted->parents[i]});
    }
    if (posted->answered < posted->batch->count) {
        loop_again(writer->loop);
        return;
    }
    batch_clear(posted->batch);
    writer->answering = NULL;
}

static void on_turn(void *arg)
{
    struct writer *writer = CAST(writer, arg);

    answers_write(writer, ANSWERS_A_TURN);
    publication_turn(&writer->publication);
}

void writer_finish(struct writer *writer)
{
    if (!writer)
        return;
    answers_write(writer, INT_MAX);
    batcher_finish(writer->batcher);
    writer_suspects_finish(writer);
}

// Handles a committed batch. Sends the next one first, to keep Postgres busy; then answers a few
// posts per turn, so that the loop learns of the next commit in time.
static void batch_pass_on(struct post_batch *posted)
{
    struct writer *writer = posted->writer;

    answers_write(writer, INT_MAX);
    metric_add(METRIC_MESSAGES_POSTED, posted->batch->count);
    posted->answered = 0;
    writer->answering = posted;
    batch_leave(posted->batch);
    batcher_flush(writer->batcher);
    loop_again(writer->loop);
}

static void batch_found(void *arg, const struct store_outcome *outcome)
{
    struct post_batch *posted = CAST(post_batch, arg);

    if (outcome->r < 0 && clock_monotonic_ms() <= posted->find_until_ms) {
        loop_timer_set(posted->recheck_timer, RECHECK_MS);
    } else if (outcome->r == 0 && result_rows(outcome->result) == 0) { // not committed
        batch_repeat(posted->batch, false);
    } else if (outcome->r == 0 && starts_read(posted, outcome->result, START_SEQ + 1)) {
        posted->writer->options.on_committed(posted->writer->options.arg, posted->id, NULL, 0);
        batch_pass_on(posted);
    } else {
        batch_end(posted->batch, -ERROR_UNAVAILABLE);
    }
}

// Looks up whether the batch was committed.
static void batch_find(void *arg)
{
    struct post_batch *posted = CAST(post_batch, arg);
    struct params params = {0};

    params_text(&params, posted->id);
    store_call(posted->writer->store, STORE_POST, &POST_BATCH_FIND, &params, batch_found, posted);
}

// The batch may have been committed, but the reply is lost.
static void batch_lost(struct post_batch *posted)
{
    metric_add(METRIC_POST_UNKNOWN, 1);
    posted->find_until_ms = clock_monotonic_ms() + posted->writer->options.wait_max_ms;
    batch_find(posted);
}

static void batch_committed(struct post_batch *posted, const struct result *result)
{
    metric_add(METRIC_POST_BATCHES, 1);
    parents_read(posted, result_text(result, 0, COLUMN_PARENTS));
    batch_pass_on(posted);
    batch_publish(posted->writer, posted);
}

static void batch_answer(struct batch *batch, const struct store_outcome *outcome)
{
    struct post_batch *posted = post_batch_of(batch);

    if (outcome->unknown) {
        batch_lost(posted);
    } else if (outcome->r == 0 && starts_read(posted, outcome->result, START_KINDS)) {
        batch_committed(posted, outcome->result);
    } else if (outcome->r == 0) {
        batch_lost(posted); // committed, but the reply cannot be read: never run it again
    } else if (outcome->r == -ERROR_REFUSED) {
        writer_check(batch);
    } else if (outcome->r != -ERROR_UNAVAILABLE && batch->count > 1) {
        metric_add(METRIC_POST_BATCHES_SPLIT, 1);
        batch_repeat(batch, true);
    } else {
        batch_end(batch, outcome->r);
    }
}

static const struct statement *batch_params(struct params *params, const struct batch *batch)
{
    struct post_batch *posted = post_batch_of(batch);
    struct writer *writer = posted->writer;

    writer->batch_number++;
    snprintf(posted->id, sizeof posted->id, "%s-%" PRIx64, writer->name, writer->batch_number);
    for (int i = 0; i < batch->count; i++)
        writer->gathered[i] = post_of(batch, i);
    batch_plan_make(&posted->plan, writer->gathered, batch->count);
    memset(posted->parents, 0, (size_t)batch->count * sizeof *posted->parents);
    return post_batch_params(params, posted);
}

static void key_write(const struct batch_item *item, int row, char *ret_key)
{
    const struct post *post = CAST_CONST(post, item);

    if (row == LOCKED_CHANNEL)
        snprintf(ret_key, ASIDE_KEY_SIZE, "%s", post->channel_id);
    else
        snprintf(ret_key, ASIDE_KEY_SIZE, "%s %s", post->channel_id, post->actor->user_id);
}

static void item_fail(struct batch_item *item, int r)
{
    post_fail(CAST_CONST(post, item), r);
}

static bool post_take(void *arg, struct batch_item *item)
{
    return writer_joins_suspects(CAST(writer, arg), CAST(post, item));
}

// A batch must not contain a key twice.
static bool post_excludes(const struct batch_item *other, const struct batch_item *item)
{
    return batch_plan_same_key(CAST_CONST(post, other), CAST_CONST(post, item));
}

// A batch can be refused as a whole and run again; later posts of its authors must not overtake it.
static bool post_precedes(const struct batch_item *other, const struct batch_item *item)
{
    return batch_plan_same_author(CAST_CONST(post, other), CAST_CONST(post, item));
}

static const struct batcher_ops ops = {
    .params = batch_params,
    .locked = writer_locked_params,
    .answer = batch_answer,
    .key_write = key_write,
    .fail = item_fail,
    .take = post_take,
    .excludes = post_excludes,
    .precedes = post_precedes,
    .rows = LOCKED_MEMBER,
};

static int post_batch_make(struct post_batch *posted, struct writer *writer, struct batch *batch)
{
    size_t max = (size_t)batch->count_max;

    posted->tag = TAG(post_batch);
    posted->writer = writer;
    posted->batch = batch;
    posted->parents = calloc(max, sizeof *posted->parents);
    bool complete = posted->parents;
    for (int kind = 0; kind < START_KINDS; kind++) {
        posted->starts[kind] = calloc(max, sizeof(int64_t));
        complete = complete && posted->starts[kind];
    }
    int r = batch_plan_init(&posted->plan, batch->count_max);
    if (r < 0 || !complete)
        return -ERROR_MEMORY;
    return loop_timer_new(writer->loop, batch_find, posted, &posted->recheck_timer);
}

static void post_batch_done(struct post_batch *posted)
{
    for (int kind = 0; kind < START_KINDS; kind++)
        free(posted->starts[kind]);
    free(posted->parents);
    batch_plan_done(&posted->plan);
    loop_timer_free(posted->recheck_timer);
}

static int writer_make_room(struct writer *writer, size_t batch_max)
{
    int count = batcher_batches(writer->batcher);
    int r = 0;

    writer->batches = calloc((size_t)count, sizeof *writer->batches);
    writer->gathered = calloc(batch_max, sizeof(struct post *));
    if (!writer->batches || !writer->gathered)
        return -ERROR_MEMORY;
    for (int i = 0; i < count && r == 0; i++)
        r = post_batch_make(&writer->batches[i], writer, batcher_batch(writer->batcher, i));
    return r;
}

static int writer_make_batcher(struct writer *writer)
{
    const struct writer_options *options = &writer->options;

    return batcher_new(writer->loop,
                       &(struct batcher_options){.store = writer->store,
                                                 .lane = STORE_POST,
                                                 .limits = {.depth = BATCHES_IN_WORK,
                                                            .batch_max = options->batch_max,
                                                            .batch_bytes = options->batch_bytes,
                                                            .queue_max = options->queue_max,
                                                            .queue_bytes = options->queue_bytes},
                                                 .answering_max = 1,
                                                 .wait_max_ms = options->wait_max_ms,
                                                 .full = METRIC_POST_QUEUE_FULL},
                       &ops, writer, &writer->batcher);
}

int writer_new(struct loop *loop, struct store *store, const struct writer_options *options,
               struct writer **ret_writer)
{
    struct writer *writer = TAGGED_NEW(writer);
    int r;

    if (!writer)
        return -ERROR_MEMORY;
    ASSERT(options->batch_max > 0);
    writer->loop = loop;
    writer->store = store;
    writer->options = *options;
    id_make('P', writer->name);
    r = publication_init(&writer->publication, loop, options, (size_t)options->batch_max);
    if (r == 0)
        r = loop_gather_add(loop, on_turn, writer);
    if (r == 0)
        r = writer_make_batcher(writer);
    if (r == 0)
        r = writer_make_room(writer, (size_t)options->batch_max);
    if (r == 0)
        r = writer_suspects_new(writer);
    if (r < 0) {
        writer_free(writer);
        return r;
    }
    *ret_writer = writer;
    return 0;
}

void writer_free(struct writer *writer)
{
    if (!writer)
        return;
    int count = writer->batches ? batcher_batches(writer->batcher) : 0;
    batcher_finish(writer->batcher);
    writer_suspects_free(writer);
    for (int i = 0; i < count; i++)
        post_batch_done(&writer->batches[i]);
    batcher_free(writer->batcher);
    publication_done(&writer->publication);
    free(writer->batches);
    free(writer->gathered);
    TAGGED_FREE(writer);
}

int writer_post(struct writer *writer, struct post *post)
{
    ASSERT(post->fn && post->actor && post->channel_id && post->text);
    post->tag = TAG(post);
    post->is_checked = false;
    post->item.item.user_id = post->actor->user_id;
    post->item.item.bytes =
        sizeof *post + post->text_length + (post->extra ? strlen(post->extra) : 0);
    return batcher_add(writer->batcher, &post->item);
}

int writer_waiting(const struct writer *writer)
{
    return batcher_waiting(writer->batcher) + writer->suspects.waiting +
           (writer->answering ? writer->answering->batch->count : 0);
}
