// SPDX-License-Identifier: Apache-2.0
// Group commit that steps around locked rows.
#include "store/batcher.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Batches of one item each that are tried again at the same time.
enum { BATCHES_ASIDE = 4 };

struct batcher {
    uint32_t tag;
    struct batcher_options options;
    const struct batcher_ops *ops;
    void *arg;
    struct group *group;
    struct aside *aside; // NULL once finished
    bool found_no_lock;  // the last batch that failed on a lock found no locked row afterwards
    int of_group; // the first batches are the group's, then come those aside, then the owner's
    int count;
    struct batch_item **waiting; // room for a batch
    struct batch batches[];
};

static void item_fail(const struct batcher *batcher, struct batch_item *item, int r)
{
    metric_add(batcher->options.full, r == -ERROR_BUSY);
    batcher->ops->fail(item, r);
}

void batch_item_fail(struct batch *batch, int index, int r)
{
    ASSERT(index >= 0 && index < batch->count && batch->items[index]); // not answered yet
    item_fail(batch->batcher, TAKE(batch->items[index]), r);
}

static bool is_aside(const struct batch *batch)
{
    return batch->aside_key[0] != '\0';
}

void batch_clear(struct batch *batch)
{
    ASSERT(!batch->in_work);
    batch->count = 0;
}

void batch_leave(struct batch *batch)
{
    struct batcher *batcher = batch->batcher;
    char key[ASIDE_KEY_SIZE];

    ASSERT(batch->in_work);
    memcpy(key, batch->aside_key, sizeof key);
    batch->aside_key[0] = '\0';
    batch->in_work = false;
    if (batch->number < batcher->of_group)
        group_done(batcher->group, batch->count);
    else if (key[0] != '\0' && batcher->aside)
        aside_done(batcher->aside, key);
}

void batch_end(struct batch *batch, int r)
{
    for (int i = 0; i < batch->count; i++)
        if (batch->items[i])
            batch_item_fail(batch, i, r);
    batch_leave(batch);
    batch_clear(batch);
}

void batch_repeat(struct batch *batch, bool alone)
{
    struct group *group = batch->batcher->group;
    int64_t now_ms = clock_monotonic_ms();

    for (int i = batch->count - 1; i >= 0; i--) {
        if (!batch->items[i] || batch->items[i]->deadline_ms < now_ms)
            continue;
        if (alone)
            group_retry_alone(group, &TAKE(batch->items[i])->item);
        else
            group_retry(group, &TAKE(batch->items[i])->item);
    }
    batch_end(batch, -ERROR_UNAVAILABLE);
}

// Those that wait for a locked row, and those being tried again.
static int items_aside(const struct batcher *batcher)
{
    int count = batcher->aside ? aside_waiting(batcher->aside) : 0;

    for (int i = batcher->of_group; i < batcher->count - 1; i++)
        count += batcher->batches[i].in_work;
    return count;
}

static bool aside_is_full(const struct batcher *batcher)
{
    return items_aside(batcher) >= batcher->options.limits.queue_max / 2;
}

void batch_put_aside(struct batch *batch, int index, int row)
{
    struct batcher *batcher = batch->batcher;
    char key[ASIDE_KEY_SIZE];

    if (aside_is_full(batcher)) {
        batch_item_fail(batch, index, -ERROR_BUSY);
        return;
    }
    metric_add(METRIC_STORE_LOCKED, 1);
    batcher->ops->key_write(batch->items[index], row, key);
    aside_add(batcher->aside, key, &TAKE(batch->items[index])->item.link);
}

// Queues the item behind those that already wait for a row it needs. False: there are none.
static bool item_joins_aside(struct batcher *batcher, struct batch_item *item)
{
    char key[ASIDE_KEY_SIZE];

    if (aside_is_empty(batcher->aside))
        return false;
    for (int row = batcher->ops->rows; row > 0; row--) {
        batcher->ops->key_write(item, row, key);
        if (!aside_holds(batcher->aside, key))
            continue;
        if (aside_is_full(batcher))
            item_fail(batcher, item, -ERROR_BUSY);
        else
            aside_add(batcher->aside, key, &item->item.link);
        return true;
    }
    return false;
}

static bool batch_precedes(const struct batch *batch, const struct batch_item *item)
{
    for (int i = 0; batch->in_work && i < batch->count; i++)
        if (batch->items[i] && batch->batcher->ops->precedes(batch->items[i], item))
            return true;
    return false;
}

static bool must_wait(const struct batch *batch, const struct batch_item *item)
{
    const struct batcher *batcher = batch->batcher;
    bool waits = false;

    for (int i = 0; batcher->ops->excludes && i < batch->count && !waits; i++)
        waits = batcher->ops->excludes(batch->items[i], item);
    for (int i = 0; batcher->ops->precedes && i < batcher->count && !waits; i++)
        waits = batch_precedes(&batcher->batches[i], item);
    return waits;
}

// Takes the items into the batch, except those that must wait.
static void batch_take(struct batch *batch, struct group_item *const *items, int count)
{
    struct batcher *batcher = batch->batcher;
    int waiting = 0;

    for (int i = 0; i < count; i++) {
        struct batch_item *item = LIST_ITEM(items[i], struct batch_item, item);
        if (batcher->ops->take && batcher->ops->take(batcher->arg, item))
            continue;
        if (item_joins_aside(batcher, item))
            continue;
        if (must_wait(batch, item))
            batcher->waiting[waiting++] = item;
        else
            batch->items[batch->count++] = item;
    }
    while (waiting > 0)
        group_retry(batcher->group, &batcher->waiting[--waiting]->item);
}

// The row is no longer locked, or the lock is on another row: runs the batch again, unchanged the
// first time and one by one the second time.
static void no_lock_found(struct batch *batch)
{
    struct batcher *batcher = batch->batcher;

    if (batch->count == 1) {
        batch_put_aside(batch, 0, batcher->ops->rows);
        batch_end(batch, -ERROR_INTERNAL);
        return;
    }
    bool alone = batcher->found_no_lock;
    batcher->found_no_lock = true;
    batch_repeat(batch, alone);
}

static void on_locked(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);
    bool any = false;

    for (int i = 0; outcome->r == 0 && i < batch->count; i++) {
        int row = (int)result_int(outcome->result, i, 0);
        if (row == 0)
            continue;
        any = true;
        batch_put_aside(batch, i, row);
    }
    if (any || outcome->r < 0)
        batch_repeat(batch, false);
    else
        no_lock_found(batch);
}

// The only item of a batch from aside keeps waiting.
static void batch_again(struct batch *batch)
{
    struct batcher *batcher = batch->batcher;
    struct batch_item *item = TAKE(batch->items[0]);
    char key[ASIDE_KEY_SIZE];

    memcpy(key, batch->aside_key, sizeof key);
    batch->aside_key[0] = '\0';
    batch->in_work = false;
    batch_clear(batch);
    if (batcher->aside)
        aside_again(batcher->aside, key, &item->item.link);
    else
        item_fail(batcher, item, -ERROR_UNAVAILABLE);
}

static void batch_locked(struct batch *batch)
{
    struct batcher *batcher = batch->batcher;
    struct params params = {0};

    if (is_aside(batch)) {
        batch_again(batch);
        return;
    }
    const struct statement *statement = batcher->ops->locked(&params, batch);
    store_call(batcher->options.store, STORE_ASIDE, statement, &params, on_locked, batch);
}

static void on_answer(void *arg, const struct store_outcome *outcome)
{
    struct batch *batch = CAST(batch, arg);

    if (outcome->locked) {
        batch_locked(batch);
        return;
    }
    if (outcome->r == 0)
        batch->batcher->found_no_lock = false;
    batch->batcher->ops->answer(batch, outcome);
}

static void batch_send(struct batch *batch, enum store_lane lane)
{
    struct batcher *batcher = batch->batcher;
    struct params params = {0};

    ASSERT(!batch->in_work && batch->count > 0);
    batch->in_work = true;
    const struct statement *statement = batcher->ops->params(&params, batch);
    store_call(batcher->options.store, lane, statement, &params, on_answer, batch);
    store_flush(batcher->options.store, lane);
}

// An available batch with a number from `first` to `end` - 1; NULL: none.
static struct batch *batch_free(struct batcher *batcher, int first, int end)
{
    for (int i = first; i < end; i++)
        if (!batcher->batches[i].in_work && batcher->batches[i].count == 0)
            return &batcher->batches[i];
    return NULL;
}

static int group_send(void *arg, struct group_item *const *items, int count)
{
    struct batcher *batcher = CAST(batcher, arg);
    struct batch *batch = batch_free(batcher, 0, batcher->of_group);

    ASSERT(batch && count <= batch->count_max); // the group never exceeds its depth
    batch_take(batch, items, count);
    if (batch->count > 0)
        batch_send(batch, batcher->options.lane);
    return batch->count;
}

static void item_try(void *arg, const char *key, struct list *link)
{
    struct batcher *batcher = CAST(batcher, arg);
    struct batch_item *item = LIST_ITEM(link, struct batch_item, item.link);
    struct batch *batch = batch_free(batcher, batcher->of_group, batcher->count - 1);

    if (item->deadline_ms < clock_monotonic_ms()) {
        aside_next(batcher->aside, key);
        item_fail(batcher, item, -ERROR_UNAVAILABLE);
        return;
    }
    if (!batch) {
        aside_again(batcher->aside, key, link);
        return;
    }
    batch->items[0] = item;
    batch->count = 1;
    snprintf(batch->aside_key, sizeof batch->aside_key, "%s", key);
    batch_send(batch, STORE_ASIDE);
}

static void item_return(void *arg, struct list *link)
{
    struct batcher *batcher = CAST(batcher, arg);
    struct batch_item *item = LIST_ITEM(link, struct batch_item, item.link);

    if (batcher->aside)
        group_retry(batcher->group, &item->item);
    else
        item_fail(batcher, item, -ERROR_UNAVAILABLE);
}

static int batches_make(struct batcher *batcher)
{
    for (int i = 0; i < batcher->count; i++) {
        struct batch *batch = &batcher->batches[i];
        bool is_aside = i >= batcher->of_group && i < batcher->count - 1;
        *batch = (struct batch){.tag = TAG(batch),
                                .batcher = batcher,
                                .number = i,
                                .count_max = is_aside ? 1 : batcher->options.limits.batch_max};
        batch->items = calloc((size_t)batch->count_max, sizeof(struct batch_item *));
        if (!batch->items)
            return -ERROR_MEMORY;
    }
    batcher->waiting =
        calloc((size_t)batcher->options.limits.batch_max, sizeof(struct batch_item *));
    return batcher->waiting ? 0 : -ERROR_MEMORY;
}

int batcher_new(struct loop *loop, const struct batcher_options *options,
                const struct batcher_ops *ops, void *arg, struct batcher **ret_batcher)
{
    int of_group = options->limits.depth + options->answering_max;
    int count = of_group + BATCHES_ASIDE + 1;
    struct batcher *batcher =
        calloc(1, sizeof *batcher + (size_t)count * sizeof batcher->batches[0]);

    if (!batcher)
        return -ERROR_MEMORY;
    batcher->tag = TAG(batcher);
    batcher->options = *options;
    batcher->ops = ops;
    batcher->arg = arg;
    batcher->of_group = of_group;
    batcher->count = count;
    int r = batches_make(batcher);
    if (r == 0)
        r = group_new(loop, &options->limits, group_send, batcher, &batcher->group);
    if (r == 0)
        r = aside_new(loop, item_try, item_return, batcher, &batcher->aside);
    if (r < 0) {
        batcher_free(batcher);
        return r;
    }
    *ret_batcher = batcher;
    return 0;
}

void batcher_finish(struct batcher *batcher)
{
    if (batcher)
        aside_free(TAKE(batcher->aside));
}

void batcher_free(struct batcher *batcher)
{
    if (!batcher)
        return;
    batcher_finish(batcher);
    group_free(batcher->group);
    for (int i = 0; i < batcher->count; i++)
        free(batcher->batches[i].items);
    free(batcher->waiting);
    TAGGED_FREE(batcher);
}

int batcher_add(struct batcher *batcher, struct batch_item *item)
{
    item->deadline_ms = clock_monotonic_ms() + batcher->options.wait_max_ms;
    int r = group_add(batcher->group, &item->item);
    metric_add(batcher->options.full, r == -ERROR_BUSY);
    return r;
}

void batcher_flush(struct batcher *batcher)
{
    group_flush(batcher->group);
}

int batcher_waiting(const struct batcher *batcher)
{
    return group_waiting(batcher->group) + items_aside(batcher);
}

int batcher_batches(const struct batcher *batcher)
{
    return batcher->count;
}

struct batch *batcher_batch(struct batcher *batcher, int number)
{
    ASSERT(number >= 0 && number < batcher->count);
    return &batcher->batches[number];
}

struct batch *batcher_owned(struct batcher *batcher)
{
    return &batcher->batches[batcher->count - 1];
}

void *batcher_arg(const struct batcher *batcher)
{
    return batcher->arg;
}
