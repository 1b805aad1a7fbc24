// SPDX-License-Identifier: Apache-2.0
// Group commit: items that arrive while one batch is in flight form the next. There is no timer. A
// batch is sent at the end of the turn in which the previous one ended or its own first item
// arrived; with depth > 1, also as soon as it is as large as the batch sent last. If the queue
// exceeds one batch, users take turns (round robin). If a batch fails as a whole, its items are
// retried one by one, so that a bad item never fails the others. On the loop's thread.
#pragma once

#include "base/list.h"
#include "base/loop.h"

#include <stdint.h>

struct group;

// The first member of every struct that is group-committed. Belongs to the group while queued.
struct group_item {
    struct list link;
    int64_t number; // order of addition
    // Set by the caller before group_add(): approximate size in memory and in a statement, and the
    // user that the item is queued for.
    size_t bytes;
    const char *user_id;
};

// Sends `count` items as one batch, except those given back by group_retry() or
// group_retry_alone(). Returns the number sent. Unless that is 0, the callee must call group_done()
// later, not from inside the call.
typedef int group_send_fn(void *arg, struct group_item *const *items, int count);

// A batch takes as many items as fit both limits, and at least one.
struct group_limits {
    int depth; // batches in flight at a time
    int batch_max;
    size_t batch_bytes;
    int queue_max; // queued items
    size_t queue_bytes;
};

NODISCARD int group_new(struct loop *loop, const struct group_limits *limits, group_send_fn *send,
                        void *arg, struct group **ret_group);
void group_free(struct group *group); // nothing may be queued or in flight

// Queues an item. -ERROR_BUSY: queue_max or queue_bytes reached; -ERROR_MEMORY.
NODISCARD int group_add(struct group *group, struct group_item *item);

// Gives back an item of a batch in flight: to the front of the queue, or (alone) to be sent as a
// batch of its own before the queue. Both keep a user's items in the order of addition. Call before
// group_done().
void group_retry(struct group *group, struct group_item *item);
void group_retry_alone(struct group *group, struct group_item *item);

// Ends a batch in flight of which `count` items were sent. Each must have been answered or given
// back.
void group_done(struct group *group, int count);

// Sends a batch now, if one is due, instead of at the end of the turn. For turns with more work to
// do.
void group_flush(struct group *group);

int group_waiting(const struct group *group); // queued and in flight
