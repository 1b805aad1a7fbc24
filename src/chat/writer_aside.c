// SPDX-License-Identifier: Apache-2.0
// Sets aside posts that need a row locked by another transaction (of a channel, an author or a
// mentioned member), so that all other posts proceed.
#include "writer_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"

#include <stdio.h>

static void key_write(char *key, const struct post *post, enum locked locked)
{
    if (locked == LOCKED_CHANNEL)
        snprintf(key, ASIDE_KEY_SIZE, "%s", post->channel_id);
    else
        snprintf(key, ASIDE_KEY_SIZE, "%s %s", post->channel_id, post->actor->user_id);
}

// At most half of the queue: the rest is reserved for posts that can proceed.
static bool is_full(const struct writer *writer)
{
    return aside_waiting(writer->aside) >= writer->options.queue_max / 2;
}

void batch_put_aside(struct batch *batch, int index, enum locked locked)
{
    struct writer *writer = batch->writer;
    struct post *post = batch->posts[index];
    char key[ASIDE_KEY_SIZE];

    if (is_full(writer)) {
        metric_add(METRIC_POST_QUEUE_FULL, 1);
        batch_post_fail(batch, index, -ERROR_BUSY);
        return;
    }
    metric_add(METRIC_STORE_LOCKED, 1);
    key_write(key, post, locked);
    aside_add(writer->aside, key, &post->item.link);
    batch->posts[index] = NULL;
}

static bool post_joins(struct writer *writer, struct post *post, enum locked locked)
{
    char key[ASIDE_KEY_SIZE];

    key_write(key, post, locked);
    if (!aside_holds(writer->aside, key))
        return false;
    if (is_full(writer)) {
        metric_add(METRIC_POST_QUEUE_FULL, 1);
        post_fail(post, -ERROR_BUSY);
    } else {
        aside_add(writer->aside, key, &post->item.link);
    }
    return true;
}

bool writer_joins_aside(struct writer *writer, struct post *post)
{
    return !aside_is_empty(writer->aside) &&
           (post_joins(writer, post, LOCKED_MEMBER) || post_joins(writer, post, LOCKED_CHANNEL));
}

// The row is no longer locked, or the lock is on another row: runs the batch again, unchanged the
// first time and one by one the second time.
static void no_lock_found(struct batch *batch)
{
    struct writer *writer = batch->writer;

    if (batch->count == 1) {
        batch_put_aside(batch, 0, LOCKED_MEMBER);
        batch_end(batch, -ERROR_INTERNAL);
        return;
    }
    bool alone = writer->found_no_lock;
    writer->found_no_lock = true;
    batch_repeat(batch, alone);
}

static void on_locked(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);
    bool any = false;

    if (outcome->r < 0) {
        batch_repeat(batch, false);
        return;
    }
    for (int i = 0; i < batch->count; i++) {
        enum locked locked = (enum locked)result_int(outcome->result, i, 0);
        if (locked == LOCKED_NOT)
            continue;
        any = true;
        batch_put_aside(batch, i, locked);
    }
    if (any)
        batch_repeat(batch, false);
    else
        no_lock_found(batch);
}

void batch_locked(struct batch *batch)
{
    struct params params = {0};

    if (batch->aside_key[0] != '\0') {
        char *key = batch->aside_key;
        aside_again(batch->writer->aside, key, &TAKE(batch->posts[0])->item.link);
        batch->in_work = false;
        batch->count = 0;
        key[0] = '\0';
        return;
    }
    const struct statement *statement = batch_locked_params(&params, batch);
    store_call(batch->writer->store, STORE_ASIDE, statement, &params, on_locked, batch);
}

static void post_try(void *arg, const char *key, struct list *item)
{
    struct writer *writer = CAST(writer, arg);
    struct post *post = LIST_ITEM(item, struct post, item.link);
    struct batch *batch = batch_free(writer, BATCHES_OF_GROUP, BATCH_OF_SUSPECTS);

    if (post->deadline_ms < clock_monotonic_ms()) {
        aside_next(writer->aside, key);
        post_fail(post, -ERROR_UNAVAILABLE);
        return;
    }
    if (!batch) {
        aside_again(writer->aside, key, item);
        return;
    }
    batch->posts[0] = post;
    batch->count = 1;
    snprintf(batch->aside_key, sizeof batch->aside_key, "%s", key);
    batch_send(batch, STORE_ASIDE);
}

static void post_return(void *arg, struct list *item)
{
    struct writer *writer = CAST(writer, arg);
    struct post *post = LIST_ITEM(item, struct post, item.link);

    if (writer->aside)
        group_retry(writer->group, &post->item);
    else
        post_fail(post, -ERROR_UNAVAILABLE);
}

int writer_aside_new(struct writer *writer)
{
    return aside_new(writer->loop, post_try, post_return, writer, &writer->aside);
}

int writer_aside_waiting(const struct writer *writer)
{
    return writer->aside ? aside_waiting(writer->aside) : 0;
}

void writer_aside_done(struct batch *batch)
{
    char key[ASIDE_KEY_SIZE];

    snprintf(key, sizeof key, "%s", batch->aside_key);
    batch->aside_key[0] = '\0';
    if (batch->writer->aside)
        aside_done(batch->writer->aside, key);
}
