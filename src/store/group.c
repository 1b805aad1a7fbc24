// SPDX-License-Identifier: Apache-2.0
// Group commit: items that arrive while one batch is in flight form the next.
#include "store/group.h"

#include "base/check.h"
#include "base/error.h"
#include "fair_queue.h"

#include <stdlib.h>

struct group {
    uint32_t tag;
    struct loop *loop;
    group_send_fn *send;
    void *arg;
    struct fair_queue *queue; // items for the next batch
    struct list alone;        // items to be sent as batches of one, before the queue
    int queued;
    size_t queued_bytes;
    struct group_limits limits;
    int batches; // in flight
    int working; // items in flight
    int newest;  // items of the batch sent last
    int64_t added;
    struct group_item *batch[];
};

static int batch_gather(struct group *group)
{
    int count = 0;
    size_t bytes = 0;
    struct group_item *item = fair_queue_first(group->queue);

    while (item && count < group->limits.batch_max &&
           (count == 0 || bytes + item->bytes <= group->limits.batch_bytes)) {
        bytes += item->bytes;
        fair_queue_take(group->queue);
        group->batch[count++] = item;
        item = fair_queue_first(group->queue);
    }
    ASSERT(group->queued >= count && group->queued_bytes >= bytes);
    group->queued_bytes -= bytes;
    group->queued -= count;
    return count;
}

static int batch_of_one(struct group *group)
{
    struct group_item *item = LIST_ITEM(group->alone.next, struct group_item, link);

    ASSERT(group->queued > 0 && group->queued_bytes >= item->bytes);
    list_remove(&item->link);
    group->queued_bytes -= item->bytes;
    group->queued--;
    group->batch[0] = item;
    return 1;
}

// A further batch is worth its cost only if it is at least as large as the previous one, or full.
static bool is_due(const struct group *group)
{
    if (group->queued == 0 || group->batches == group->limits.depth)
        return false;
    if (group->batches == 0)
        return true;
    return list_is_empty(&group->alone) &&
           (group->queued >= group->newest || group->queued_bytes >= group->limits.batch_bytes);
}

void group_flush(struct group *group)
{
    if (!is_due(group))
        return;
    int count = list_is_empty(&group->alone) ? batch_gather(group) : batch_of_one(group);
    int taken = group->send(group->arg, group->batch, count);
    ASSERT(taken >= 0 && taken <= count);
    if (taken == 0)
        return;
    group->batches++;
    group->working += taken;
    group->newest = taken;
    loop_again(group->loop); // an idle callback flushes what was sent just now
}

static void turn_end(void *arg)
{
    group_flush(CAST(group, arg));
}

int group_new(struct loop *loop, const struct group_limits *limits, group_send_fn *send, void *arg,
              struct group **ret_group)
{
    ASSERT(send && limits->depth > 0 && limits->batch_max > 0 && limits->queue_max >= 0);
    struct group *group =
        calloc(1, sizeof *group + (size_t)limits->batch_max * sizeof *group->batch);

    if (!group)
        return -ERROR_MEMORY;
    group->tag = TAG(group);
    group->loop = loop;
    group->send = send;
    group->arg = arg;
    group->limits = *limits;
    list_init(&group->alone);
    int r = fair_queue_new(&group->queue);
    if (r == 0)
        r = loop_gather_add(loop, turn_end, group);
    if (r < 0) {
        group_free(group);
        return r;
    }
    *ret_group = group;
    return 0;
}

void group_free(struct group *group)
{
    if (!group)
        return;
    fair_queue_free(group->queue);
    TAGGED_FREE(group);
}

int group_add(struct group *group, struct group_item *item)
{
    ASSERT(item->user_id);
    if (group->queued >= group->limits.queue_max ||
        (group->queued > 0 && group->queued_bytes + item->bytes > group->limits.queue_bytes))
        return -ERROR_BUSY;
    item->number = group->added++;
    int r = fair_queue_add(group->queue, item);
    if (r < 0)
        return r;
    group->queued++;
    group->queued_bytes += item->bytes;
    return 0;
}

void group_retry(struct group *group, struct group_item *item)
{
    fair_queue_return(group->queue, item);
    group->queued++;
    group->queued_bytes += item->bytes;
}

void group_retry_alone(struct group *group, struct group_item *item)
{
    struct list *later = group->alone.next;

    while (later != &group->alone &&
           LIST_ITEM(later, struct group_item, link)->number < item->number)
        later = later->next;
    list_append(later, &item->link);
    group->queued++;
    group->queued_bytes += item->bytes;
}

void group_done(struct group *group, int count)
{
    ASSERT(group->batches > 0 && count >= 0 && group->working >= count);
    group->batches--;
    group->working -= count;
}

int group_waiting(const struct group *group)
{
    return group->queued + group->working;
}
