// SPDX-License-Identifier: Apache-2.0
// Group commit: what arrives while one batch is in work forms the next. There is no timer: a batch
// is sent at the end of the turn in which the one before it ended, or in which its first item came.
// When a batch fails as a whole, its items are tried again one by one, so that one bad item never
// fails another. On the loop's thread.
#pragma once

#include "base/list.h"
#include "base/loop.h"

struct group;

// The first member of whatever is committed in groups.
struct group_item {
    struct list link;
};

// Sends `count` items as one batch; must lead to group_done() later, never inside the call.
typedef void group_send_fn(void *arg, struct group_item *const *items, int count);

NODISCARD int group_new(struct loop *loop, int batch_max, int queue_max, group_send_fn *send,
                        void *arg, struct group **ret_group);
void group_free(struct group *group); // nothing may be queued or in work

// Queues an item. -ERROR_BUSY when queue_max wait already.
NODISCARD int group_add(struct group *group, struct group_item *item);

// An item of the batch in work goes back to the front of the queue / is tried alone next time.
// Before group_done().
void group_retry(struct group *group, struct group_item *item);
void group_retry_alone(struct group *group, struct group_item *item);

// The batch in work has ended: every item of it was answered or given back.
void group_done(struct group *group);

// Sends what waits now, if no batch is in work, and not at the end of the turn: for when this turn
// has more to do.
void group_flush(struct group *group);

int group_waiting(const struct group *group); // queued and in work
