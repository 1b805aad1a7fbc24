// SPDX-License-Identifier: Apache-2.0
// Group commit: what arrives while one batch is in work forms the next. There is no timer: a batch
// is sent at the end of the turn in which the one before it ended, or in which its first item came;
// or, where more than one may be in work, as soon as it is as large as the one sent last.
// Where more waits than one batch takes, whoever has something waiting has a turn after the other.
// When a batch fails as a whole, its items are tried again one by one, so that one bad item never
// fails another. On the loop's thread.
#pragma once

#include "base/list.h"
#include "base/loop.h"

#include <stdint.h>

struct group;

// The first member of whatever is committed in groups; the group's alone.
struct group_item {
    struct list link;
    int64_t number; // in the order added
    // Set by whoever adds it: about what it takes in memory and in a statement, and who it is of.
    size_t bytes;
    const char *user_id;
};

// Sends `count` items as one batch, but for those that it gives back, and returns how many it sent;
// must lead to group_done() later, never inside the call, unless that is 0.
typedef int group_send_fn(void *arg, struct group_item *const *items, int count);

// A batch has as many items as fit both bounds, and one at least.
struct group_limits {
    int depth; // batches in work at a time
    int batch_max;
    size_t batch_bytes;
    int queue_max; // items that wait
    size_t queue_bytes;
};

NODISCARD int group_new(struct loop *loop, const struct group_limits *limits, group_send_fn *send,
                        void *arg, struct group **ret_group);
void group_free(struct group *group); // nothing may be queued or in work

// Queues an item. -ERROR_BUSY when as many, or as many bytes, wait as may; -ERROR_MEMORY.
NODISCARD int group_add(struct group *group, struct group_item *item);

// An item of a batch in work goes back to the front of the queue / is tried alone, before all that
// is queued. Either keeps the order in which a user's items were added. Before group_done().
void group_retry(struct group *group, struct group_item *item);
void group_retry_alone(struct group *group, struct group_item *item);

// A batch in work has ended, of which `count` items were sent: every one was answered or given
// back.
void group_done(struct group *group, int count);

// Sends what waits now, if that is due, and not at the end of the turn: for when this turn
// has more to do.
void group_flush(struct group *group);

int group_waiting(const struct group *group); // queued and in work
