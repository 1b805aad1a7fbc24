// SPDX-License-Identifier: Apache-2.0
// Group commit (group.h) of items whose rows other transactions may have locked. Items that need a
// locked row wait aside (aside.h), while all others go on: the batch that found a row locked asks
// Postgres which rows those are, sets aside the items that need them, and runs again with the rest.
// Items for a row that others already wait for join them. On the loop's thread.
#pragma once

#include "base/metrics.h"
#include "store/aside.h"
#include "store/group.h"
#include "store/store.h"

struct batcher;

// The first member of every item.
struct batch_item {
    struct group_item item; // its `bytes` and `user_id` are set before batcher_add()
    int64_t deadline_ms;    // set by batcher_add()
};

// Items that travel as one statement; NULL once answered or given back.
struct batch {
    uint32_t tag;
    struct batcher *batcher;
    int number; // among the batcher's batches: from 0 to batcher_batches() - 1
    int count;
    int count_max;
    struct batch_item **items;
    bool in_work;
    char aside_key[ASIDE_KEY_SIZE]; // not "": its only item is tried again
};

// What the owner does in its own way. `locked` and `key_write` know the rows of an item by numbers
// from 1 to `rows`, the narrowest last.
struct batcher_ops {
    // Writes the batch's statement.
    const struct statement *(*params)(struct params *params, const struct batch *batch);
    // Writes a statement that returns a row per item: 0, or the number of a row that it needs and
    // that is locked now.
    const struct statement *(*locked)(struct params *params, const struct batch *batch);
    // Handles the outcome of a batch that found no row locked. Must lead to batch_leave(),
    // batch_end() or batch_repeat().
    void (*answer)(struct batch *batch, const struct store_outcome *outcome);
    // The key of a row that the item needs, ASIDE_KEY_SIZE bytes.
    void (*key_write)(const struct batch_item *item, int row, char *ret_key);
    // Answers an item that was not committed.
    void (*fail)(struct batch_item *item, int r);
    // Takes an item that is to be in no batch now. NULL: there are none.
    bool (*take)(void *arg, struct batch_item *item);
    // Whether `item` may not be in one batch with `other`; whether it must wait while `other` is in
    // flight. NULL: never.
    bool (*excludes)(const struct batch_item *other, const struct batch_item *item);
    bool (*precedes)(const struct batch_item *other, const struct batch_item *item);
    int rows;
};

struct batcher_options {
    struct store *store;
    enum store_lane lane;
    struct group_limits limits; // at most half of the queue waits for locked rows
    int answering_max;          // batches that may be out of work, but not yet cleared
    int64_t wait_max_ms;        // how long an item waits before it fails with -ERROR_UNAVAILABLE
    enum metric full;           // counts items refused with -ERROR_BUSY
};

// `ops` must outlive the batcher.
NODISCARD int batcher_new(struct loop *loop, const struct batcher_options *options,
                          const struct batcher_ops *ops, void *arg, struct batcher **ret_batcher);

// Fails the items that wait aside. Call it after freeing the store.
void batcher_finish(struct batcher *batcher);
void batcher_free(struct batcher *batcher); // also finishes; accepts NULL

// Queues an item. -ERROR_BUSY: the queue is full.
NODISCARD int batcher_add(struct batcher *batcher, struct batch_item *item);

void batcher_flush(struct batcher *batcher); // see group_flush()
int batcher_waiting(
    const struct batcher *batcher); // items queued, aside and in flight, without the owner's own

// Number of batches, those with a number of their own included; the last one is the owner's: it
// fills and sends it by itself.
int batcher_batches(const struct batcher *batcher);
struct batch *batcher_batch(struct batcher *batcher, int number);
struct batch *batcher_owned(struct batcher *batcher);
void *batcher_arg(const struct batcher *batcher); // the owner

// Answers an item of the batch with an error.
void batch_item_fail(struct batch *batch, int index, int r);

// Sets an item aside until `row` is no longer locked; fails it if too many wait.
void batch_put_aside(struct batch *batch, int index, int row);

// Queues the remaining items again, except those past their deadline: as they are, or each to be
// sent alone. Ends the batch.
void batch_repeat(struct batch *batch, bool alone);

// Fails the remaining items, and ends the batch.
void batch_end(struct batch *batch, int r);

// Takes a committed batch out of work: the next one may be sent. Its items remain until
// batch_clear(), which makes the batch available.
void batch_leave(struct batch *batch);
void batch_clear(struct batch *batch);
