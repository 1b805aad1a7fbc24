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

// Follows the columns of enum batch_start.
enum { COLUMN_PARENTS = START_KINDS };

void batch_post_answer(struct batch *batch, int index, const struct post_outcome *outcome)
{
    ASSERT(index >= 0 && index < batch->count && batch->posts[index]); // not answered yet
    struct post *post = TAKE(batch->posts[index]);

    post->fn(post->arg, outcome);
}

void post_fail(struct post *post, int r)
{
    post->fn(post->arg, &(struct post_outcome){.r = r, .parent_user = ""});
}

void batch_post_fail(struct batch *batch, int index, int r)
{
    ASSERT(index >= 0 && index < batch->count && batch->posts[index]);
    post_fail(TAKE(batch->posts[index]), r);
}

// Takes the batch out of work.
static void batch_leave(struct batch *batch)
{
    struct writer *writer = batch->writer;

    ASSERT(batch->in_work);
    batch->in_work = false;
    if (batch->aside_key[0] != '\0')
        writer_aside_done(batch);
    else if (batch != &writer->batches[BATCH_OF_SUSPECTS])
        group_done(writer->group, batch->count);
}

void batch_end(struct batch *batch, int r)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->posts[i])
            batch_post_fail(batch, i, r);
    batch_leave(batch);
    batch->count = 0;
}

static void post_requeue(struct batch *batch, int index, bool alone)
{
    struct post *post = TAKE(batch->posts[index]);

    if (alone)
        group_retry_alone(batch->writer->group, &post->item);
    else
        group_retry(batch->writer->group, &post->item);
}

static int64_t start_of(const struct batch *batch, int index, enum batch_start kind)
{
    int64_t channel = batch->plan.places[index].channel;

    ASSERT(index < batch->plan.count && channel > 0 && channel <= batch->plan.channel_count);
    return batch->starts[kind][channel - 1];
}

static int64_t ts_of(const struct batch *batch, int index)
{
    return start_of(batch, index, START_TS) + batch->plan.places[index].rank;
}

static int64_t seq_of(const struct batch *batch, int index)
{
    return start_of(batch, index, START_SEQ) + batch->plan.places[index].rank;
}

// Reads the first `kinds` columns. False: the reply does not match the batch.
static bool batch_read(struct batch *batch, const struct result *result, int kinds)
{
    for (int kind = 0; kind < kinds; kind++)
        if (result_ints(result, 0, kind, batch->starts[kind], batch->plan.channel_count) !=
            batch->plan.channel_count)
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

static struct event *event_of(const struct batch *batch, int index)
{
    const struct post *post = batch->posts[index];
    int64_t ts = ts_of(batch, index);
    int64_t seq = seq_of(batch, index);
    struct message message = post_message(post, ts, seq, "");
    struct frame_context context = {
        .workspace_id = post->actor->workspace_id,
        .channel_id = post->channel_id,
        .type = (enum channel_type)(start_of(batch, index, START_TRAITS) & 3),
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
                                      .ord = start_of(batch, index, START_ORD) +
                                             batch->plan.places[index].ord,
                                      .strategy = start_of(batch, index, START_TRAITS) >> 2 & 3,
                                      .generation = start_of(batch, index, START_TRAITS) >> 4};
    return event;
}

// Builds the events of the batch. False: they must be read back, because memory ran out or the
// batch contains replies (they do not move the channel's head, and only the tables know its value).
static bool batch_events(const struct batch *batch, struct event **ret_events)
{
    bool complete = !batch->plan.has_replies;
    int count = 0;

    while (complete && count < batch->count) {
        ret_events[count] = event_of(batch, count);
        complete = ret_events[count] != NULL;
        count += complete;
    }
    while (!complete && count > 0)
        event_unref(TAKE(ret_events[--count]));
    return complete;
}

// Publishes a commit. The replies and the next batch are already on their way, since callers wait
// for those.
static void batch_publish(struct writer *writer, const struct batch *batch)
{
    struct event **events = publication_next(&writer->publication);
    size_t count = batch_events(batch, events) ? (size_t)batch->count : 0;

    publication_commit(&writer->publication, batch->id, count);
}

// The authors of the threads' roots, separated by commas.
static void parents_read(struct batch *batch, const char *parents)
{
    for (int i = 0; batch->plan.has_replies && i < batch->count; i++) {
        size_t length = strcspn(parents, ",");
        snprintf(batch->parents[i], EVENT_ID_SIZE, "%.*s", (int)length, parents);
        parents += length + (parents[length] == ',');
    }
}

static void answers_write(struct writer *writer, int max)
{
    struct batch *batch = writer->answering;

    if (!batch)
        return;
    for (; batch->answered < batch->count && max > 0; max--) {
        int i = batch->answered++;
        batch_post_answer(batch, i,
                          &(struct post_outcome){.ts = ts_of(batch, i),
                                                 .seq = seq_of(batch, i),
                                                 .parent_user = batch->parents[i]});
    }
    if (batch->answered < batch->count) {
        loop_again(writer->loop);
        return;
    }
    batch->count = 0;
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
    aside_free(TAKE(writer->aside));
    writer_suspects_finish(writer);
}

// Handles a committed batch. Sends the next one first, to keep Postgres busy; then answers a few
// posts per turn, so that the loop learns of the next commit in time.
static void batch_pass_on(struct batch *batch)
{
    struct writer *writer = batch->writer;

    answers_write(writer, INT_MAX);
    metric_add(METRIC_MESSAGES_POSTED, batch->count);
    batch->answered = 0;
    writer->answering = batch;
    batch_leave(batch);
    group_flush(writer->group);
    loop_again(writer->loop);
}

static void batch_find(void *arg);

void batch_repeat(struct batch *batch, bool alone)
{
    int64_t now_ms = clock_monotonic_ms();

    for (int i = batch->count - 1; i >= 0; i--) {
        const struct post *post = batch->posts[i];
        if (!post)
            continue;
        if (post->deadline_ms < now_ms)
            batch_post_fail(batch, i, -ERROR_UNAVAILABLE);
        else
            post_requeue(batch, i, alone);
    }
    batch_end(batch, -ERROR_INTERNAL);
}

static void batch_found(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);

    if (outcome->r < 0 && clock_monotonic_ms() > batch->find_until_ms) {
        batch_end(batch, -ERROR_UNAVAILABLE);
        return;
    }
    if (outcome->r < 0) {
        loop_timer_set(batch->recheck_timer, RECHECK_MS);
        return;
    }
    if (result_rows(outcome->result) == 0) { // not committed
        batch_repeat(batch, false);
        return;
    }
    if (!batch_read(batch, outcome->result, START_SEQ + 1)) {
        batch_end(batch, -ERROR_UNAVAILABLE);
        return;
    }
    batch->writer->options.on_committed(batch->writer->options.arg, batch->id, NULL, 0);
    batch_pass_on(batch);
}

// Looks up whether the batch was committed.
static void batch_find(void *arg)
{
    struct batch *batch = CAST(batch, arg);
    struct params params = {0};

    params_text(&params, batch->id);
    store_call(batch->writer->store, STORE_POST, &POST_BATCH_FIND, &params, batch_found, batch);
}

// The batch may have been committed, but the reply is lost.
static void batch_lost(struct batch *batch)
{
    metric_add(METRIC_POST_UNKNOWN, 1);
    batch->find_until_ms = clock_monotonic_ms() + batch->writer->options.wait_max_ms;
    batch_find(batch);
}

static void batch_committed(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);

    if (outcome->unknown) {
        batch_lost(batch);
    } else if (outcome->r == 0 && batch_read(batch, outcome->result, START_KINDS)) {
        metric_add(METRIC_POST_BATCHES, 1);
        batch->writer->found_no_lock = false;
        parents_read(batch, result_text(outcome->result, 0, COLUMN_PARENTS));
        batch_pass_on(batch);
        batch_publish(batch->writer, batch);
    } else if (outcome->r == 0) {
        batch_lost(batch); // committed, but the reply cannot be read: never run it again
    } else if (outcome->r == -ERROR_REFUSED) {
        writer_check(batch);
    } else if (outcome->locked) {
        batch_locked(batch);
    } else if (outcome->r != -ERROR_UNAVAILABLE && batch->count > 1) {
        metric_add(METRIC_POST_BATCHES_SPLIT, 1);
        batch_repeat(batch, true);
    } else {
        batch_end(batch, outcome->r);
    }
}

struct batch *batch_free(struct writer *writer, int first, int end)
{
    for (int i = first; i < end; i++)
        if (!writer->batches[i].in_work && writer->batches[i].count == 0)
            return &writer->batches[i];
    return NULL;
}

// Whether a post must wait for a batch in flight. A batch can be refused as a whole and run again;
// later posts of its authors must not overtake it. Nor may a batch contain a key twice.
static bool must_wait(const struct writer *writer, const struct batch *batch,
                      const struct post *post)
{
    for (int k = 0; post->key && k < batch->count; k++)
        if (batch_plan_same_key(batch->posts[k], post))
            return true;
    for (int i = 0; i < BATCHES_MAX; i++) {
        const struct batch *other = &writer->batches[i];
        for (int k = 0; other->in_work && k < other->count; k++)
            if (other->posts[k] && batch_plan_same_author(other->posts[k], post))
                return true;
    }
    return false;
}

// Takes the items into the batch, except those that must wait.
static void batch_take(struct batch *batch, struct group_item *const *items, int count)
{
    struct writer *writer = batch->writer;
    int waiting = 0;

    batch->count = 0;
    for (int i = 0; i < count; i++) {
        struct post *post = CAST(post, items[i]);
        if (writer_joins_suspects(writer, post) || writer_joins_aside(writer, post))
            continue;
        if (must_wait(writer, batch, post))
            writer->waiting[waiting++] = post;
        else
            batch->posts[batch->count++] = post;
    }
    while (waiting > 0)
        group_retry(writer->group, &writer->waiting[--waiting]->item);
}

void batch_send(struct batch *batch, enum store_lane lane)
{
    struct writer *writer = batch->writer;
    struct params params = {0};

    ASSERT(!batch->in_work && batch->count > 0);
    batch->in_work = true;
    writer->batch_number++;
    snprintf(batch->id, sizeof batch->id, "%s-%" PRIx64, writer->name, writer->batch_number);
    batch_plan_make(&batch->plan, batch->posts, batch->count);
    memset(batch->parents, 0, (size_t)batch->count * sizeof *batch->parents);
    const struct statement *statement = batch_post_params(&params, batch);
    store_call(writer->store, lane, statement, &params, batch_committed, batch);
    store_flush(writer->store, lane);
}

static int group_send(void *arg, struct group_item *const *items, int count)
{
    struct batch *batch = batch_free(CAST(writer, arg), 0, BATCHES_OF_GROUP);

    ASSERT(batch && count <= batch->plan.count_max); // the group never exceeds its depth
    batch_take(batch, items, count);
    if (batch->count > 0)
        batch_send(batch, STORE_POST);
    return batch->count;
}

static int batch_make(struct batch *batch, struct writer *writer, size_t max)
{
    batch->tag = TAG(batch);
    batch->writer = writer;
    batch->posts = calloc(max, sizeof(struct post *));
    batch->parents = calloc(max, sizeof *batch->parents);
    bool complete = batch->posts && batch->parents;
    for (int kind = 0; kind < START_KINDS; kind++) {
        batch->starts[kind] = calloc(max, sizeof(int64_t));
        complete = complete && batch->starts[kind];
    }
    int r = batch_plan_init(&batch->plan, (int)max);
    if (r < 0 || !complete)
        return -ERROR_MEMORY;
    return loop_timer_new(writer->loop, batch_find, batch, &batch->recheck_timer);
}

static void batch_done(struct batch *batch)
{
    for (int kind = 0; kind < START_KINDS; kind++)
        free(batch->starts[kind]);
    free(batch->posts);
    free(batch->parents);
    batch_plan_done(&batch->plan);
    loop_timer_free(batch->recheck_timer);
}

// Capacity of a batch in posts: those set aside are sent one by one.
static size_t batch_room(int number, size_t batch_max)
{
    return number < BATCHES_OF_GROUP || number == BATCH_OF_SUSPECTS ? batch_max : 1;
}

static int writer_make_room(struct writer *writer, size_t batch_max)
{
    int r = 0;

    for (int i = 0; i < BATCHES_MAX && r == 0; i++)
        r = batch_make(&writer->batches[i], writer, batch_room(i, batch_max));
    writer->waiting = calloc(batch_max, sizeof(struct post *));
    if (r == 0 && !writer->waiting)
        r = -ERROR_MEMORY;
    int published =
        publication_init(&writer->publication, writer->loop, &writer->options, batch_max);
    return r < 0 ? r : published;
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
    r = writer_make_room(writer, (size_t)options->batch_max);
    if (r < 0)
        goto fail;
    r = loop_gather_add(loop, on_turn, writer);
    if (r < 0)
        goto fail;
    r = group_new(loop,
                  &(struct group_limits){.depth = BATCHES_IN_WORK,
                                         .batch_max = options->batch_max,
                                         .batch_bytes = options->batch_bytes,
                                         .queue_max = options->queue_max,
                                         .queue_bytes = options->queue_bytes},
                  group_send, writer, &writer->group);
    if (r < 0)
        goto fail;
    r = writer_aside_new(writer);
    if (r < 0)
        goto fail;
    r = writer_suspects_new(writer);
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
    if (!writer)
        return;
    aside_free(writer->aside);
    writer_suspects_free(writer);
    group_free(writer->group);
    for (int i = 0; i < BATCHES_MAX; i++)
        batch_done(&writer->batches[i]);
    publication_done(&writer->publication);
    free(writer->waiting);
    TAGGED_FREE(writer);
}

int writer_post(struct writer *writer, struct post *post)
{
    ASSERT(post->fn && post->actor && post->channel_id && post->text);
    post->tag = TAG(post);
    post->is_checked = false;
    post->deadline_ms = clock_monotonic_ms() + writer->options.wait_max_ms;
    post->item.user_id = post->actor->user_id;
    post->item.bytes = sizeof *post + post->text_length + (post->extra ? strlen(post->extra) : 0);
    int r = group_add(writer->group, &post->item);
    if (r < 0)
        metric_add(METRIC_POST_QUEUE_FULL, 1);
    return r;
}

int writer_waiting(const struct writer *writer)
{
    return group_waiting(writer->group) + writer_aside_waiting(writer) + writer->suspects.waiting +
           (writer->answering ? writer->answering->count : 0);
}
