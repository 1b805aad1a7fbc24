// SPDX-License-Identifier: Apache-2.0
// Checks suspect posts before they join a batch. One refused post rolls back a whole batch, so
// posts by recently refused authors are checked separately, together and at intervals. The same
// applies to authors who reused a key.
#include "writer_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

enum { SUSPECT_MS = 1000, CHECK_EVERY_MS = 50, SUSPECTS_MAX = 4096 };

// After a snapshot that another instance has seen, channels may stay hot for this long.
enum { HOT_MS = 10 * 1000 };

// The columns of post_check().
enum { CHECK_ERROR, CHECK_DUPLICATE_TS };

struct suspect {
    UT_hash_handle hh;
    char user_id[EVENT_ID_SIZE];
    int64_t until_ms;
    int waiting; // posts
};

static struct suspect *suspect_find(const struct writer *writer, const char *user_id)
{
    struct suspect *suspect;

    HASH_FIND_STR(writer->suspects.by_user, user_id, suspect);
    return suspect;
}

static void suspect_forget(struct writer *writer, struct suspect *suspect)
{
    HASH_DEL(writer->suspects.by_user, suspect);
    free(suspect);
}

// Makes room for one more entry: removes expired ones, or else the oldest without waiting posts.
static void suspects_shrink(struct writer *writer)
{
    struct suspect *suspect;
    struct suspect *next;
    bool full = HASH_COUNT(writer->suspects.by_user) >= SUSPECTS_MAX;

    HASH_ITER(hh, writer->suspects.by_user, suspect, next)
    {
        if (suspect->waiting > 0)
            continue;
        if (!full && suspect->until_ms > clock_monotonic_ms())
            return;
        full = false;
        suspect_forget(writer, suspect);
    }
}

static void suspect_add(struct writer *writer, const struct post *post)
{
    struct suspect *suspect = suspect_find(writer, post->actor->user_id);

    if (!suspect) {
        suspects_shrink(writer);
        suspect = memory_must_new(sizeof *suspect);
        memcpy(suspect->user_id, post->actor->user_id,
               strnlen(post->actor->user_id, sizeof suspect->user_id - 1));
        HASH_ADD_STR(writer->suspects.by_user, user_id, suspect);
    }
    suspect->until_ms = clock_monotonic_ms() + SUSPECT_MS;
}

// Removes the post from those to be checked.
static void suspect_leave(struct writer *writer, const struct post *post)
{
    struct suspect *suspect = suspect_find(writer, post->actor->user_id);

    ASSERT(writer->suspects.waiting > 0);
    writer->suspects.waiting--;
    if (suspect)
        suspect->waiting--;
}

bool writer_joins_suspects(struct writer *writer, struct post *post)
{
    struct suspects *suspects = &writer->suspects;
    struct suspect *suspect = NULL;

    if (suspects->by_user && !post->is_checked)
        suspect = suspect_find(writer, post->actor->user_id);
    if (!suspect)
        return false;
    if (suspect->waiting == 0 && suspect->until_ms <= clock_monotonic_ms()) {
        suspect_forget(writer, suspect);
        return false;
    }
    if (suspects->waiting >= writer->options.queue_max / 2) {
        metric_add(METRIC_POST_QUEUE_FULL, 1);
        post_fail(post, -ERROR_BUSY);
        return true;
    }
    if (suspects->waiting == 0)
        loop_timer_set(suspects->timer, CHECK_EVERY_MS);
    list_append(&suspects->posts, &post->item.item.link);
    suspects->waiting++;
    suspect->waiting++;
    return true;
}

static void check_answer(struct batch *batch, int index, const struct result *result)
{
    struct writer *writer = post_batch_of(batch)->writer;
    const char *error = result_text(result, index, CHECK_ERROR);
    struct post_outcome duplicate = {.ts = result_int(result, index, CHECK_DUPLICATE_TS),
                                     .is_duplicate = true,
                                     .parent_user = ""};

    if (error[0] == '\0' && duplicate.ts == 0)
        return;
    suspect_add(writer, post_of(batch, index));
    if (error[0] != '\0') {
        batch_item_fail(batch, index, error_from_code(error));
    } else {
        metric_add(METRIC_MESSAGES_DUPLICATE, 1);
        batch_post_answer(batch, index, &duplicate);
    }
}

// No post is at fault: something changed meanwhile, or post_check() differs from post_batch(). To
// avoid an endless loop, the posts are retried one by one, with pauses.
static void no_fault_found(struct batch *batch)
{
    struct writer *writer = post_batch_of(batch)->writer;
    bool alone = batch->count > 1;

    if (writer_heat(writer) == 0) { // a channel is hot: another instance saw a snapshot
        writer->hot_until_ms = clock_monotonic_ms() + HOT_MS;
        batch_repeat(batch, false);
        return;
    }
    if (!alone && batch->aside_key[0] == '\0')
        batch_put_aside(batch, 0, LOCKED_MEMBER);
    batch_repeat(batch, alone);
}

static void batch_checked(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);
    bool any = false;

    if (outcome->r < 0) {
        batch_end(batch, outcome->r);
        return;
    }
    for (int i = 0; i < batch->count; i++) {
        check_answer(batch, i, outcome->result);
        any = any || !batch->items[i];
    }
    if (any)
        batch_repeat(batch, false);
    else
        no_fault_found(batch);
}

void writer_check(struct batch *batch)
{
    struct params params = {0};

    metric_add(METRIC_POST_BATCHES_REFUSED, 1);
    const struct statement *statement = writer_check_params(&params, batch);
    store_call(post_batch_of(batch)->writer->store, STORE_POST, statement, &params, batch_checked,
               batch);
}

static void check_next(struct writer *writer)
{
    if (writer->suspects.waiting > 0)
        loop_timer_set(writer->suspects.timer, CHECK_EVERY_MS);
}

static void suspects_checked(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);
    struct writer *writer = post_batch_of(batch)->writer;

    for (int i = 0; i < batch->count; i++) {
        suspect_leave(writer, post_of(batch, i));
        post_of(batch, i)->is_checked = true;
        if (outcome->r == 0)
            check_answer(batch, i, outcome->result);
    }
    check_next(writer);
    if (outcome->r < 0)
        batch_end(batch, outcome->r);
    else
        batch_repeat(batch, false);
}

static void suspects_check(void *arg)
{
    struct writer *writer = CAST(writer, arg);
    struct batch *batch = batcher_owned(writer->batcher);
    struct params params = {0};

    if (batch->in_work || list_is_empty(&writer->suspects.posts))
        return;
    batch->in_work = true;
    batch->count = 0;
    while (batch->count < writer->options.batch_max && !list_is_empty(&writer->suspects.posts)) {
        struct list *link = writer->suspects.posts.next;
        list_remove(link);
        batch->items[batch->count++] = LIST_ITEM(link, struct batch_item, item.link);
    }
    const struct statement *statement = writer_check_params(&params, batch);
    store_call(writer->store, STORE_READ, statement, &params, suspects_checked, batch);
}

int writer_suspects_new(struct writer *writer)
{
    list_init(&writer->suspects.posts);
    return loop_timer_new(writer->loop, suspects_check, writer, &writer->suspects.timer);
}

void writer_suspects_finish(struct writer *writer)
{
    LIST_FOREACH(link, &writer->suspects.posts)
    {
        struct post *post = LIST_ITEM(link, struct post, item.item.link);
        list_remove(link);
        suspect_leave(writer, post);
        post_fail(post, -ERROR_UNAVAILABLE);
    }
}

void writer_suspects_free(struct writer *writer)
{
    while (writer->suspects.by_user)
        suspect_forget(writer, writer->suspects.by_user);
    loop_timer_free(writer->suspects.timer);
}
