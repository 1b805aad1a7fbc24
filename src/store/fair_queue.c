// SPDX-License-Identifier: Apache-2.0
// A queue that serves users round robin.
#include "fair_queue.h"

#include "base/actor.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

// A user with items.
struct waiter {
    UT_hash_handle hh;
    char user_id[sizeof(((struct actor *)NULL)->user_id)];
    struct list items;
    struct list turn; // link in the queue's `turns`
};

struct fair_queue {
    struct waiter *by_user; // uthash
    struct list turns;      // waiters; the next one to be served is first
};

static struct waiter *first_waiter(const struct fair_queue *queue)
{
    return LIST_ITEM(queue->turns.next, struct waiter, turn);
}

static struct waiter *waiter_find(const struct fair_queue *queue, const char *user_id)
{
    struct waiter *waiter;

    HASH_FIND_STR(queue->by_user, user_id, waiter);
    return waiter;
}

static void waiter_add(struct fair_queue *queue, struct waiter *waiter, const char *user_id)
{
    ASSERT(strlen(user_id) < sizeof waiter->user_id);
    memcpy(waiter->user_id, user_id, strlen(user_id));
    list_init(&waiter->items);
    list_append(&queue->turns, &waiter->turn);
    HASH_ADD_STR(queue->by_user, user_id, waiter);
}

int fair_queue_new(struct fair_queue **ret_queue)
{
    struct fair_queue *queue = calloc(1, sizeof *queue);

    if (!queue)
        return -ERROR_MEMORY;
    list_init(&queue->turns);
    *ret_queue = queue;
    return 0;
}

static void waiter_free(struct fair_queue *queue, struct waiter *waiter)
{
    HASH_DEL(queue->by_user, waiter);
    list_remove(&waiter->turn);
    free(waiter);
}

void fair_queue_free(struct fair_queue *queue)
{
    if (!queue)
        return;
    LIST_FOREACH(turn, &queue->turns)
    {
        waiter_free(queue, LIST_ITEM(turn, struct waiter, turn));
    }
    free(queue);
}

int fair_queue_add(struct fair_queue *queue, struct group_item *item)
{
    struct waiter *waiter = waiter_find(queue, item->user_id);

    if (!waiter) {
        waiter = calloc(1, sizeof *waiter);
        if (!waiter)
            return -ERROR_MEMORY;
        waiter_add(queue, waiter, item->user_id);
    }
    list_append(&waiter->items, &item->link);
    return 0;
}

struct group_item *fair_queue_first(const struct fair_queue *queue)
{
    if (list_is_empty(&queue->turns))
        return NULL;
    return LIST_ITEM(first_waiter(queue)->items.next, struct group_item, link);
}

void fair_queue_take(struct fair_queue *queue)
{
    ASSERT(!list_is_empty(&queue->turns));
    struct waiter *waiter = first_waiter(queue);
    ASSERT(!list_is_empty(&waiter->items)); // a user without items has no turn
    list_remove(waiter->items.next);
    if (list_is_empty(&waiter->items)) {
        waiter_free(queue, waiter);
        return;
    }
    list_remove(&waiter->turn);
    list_append(&queue->turns, &waiter->turn);
}

void fair_queue_return(struct fair_queue *queue, struct group_item *item)
{
    struct waiter *waiter = waiter_find(queue, item->user_id);

    if (!waiter) {
        waiter = memory_must_new(sizeof *waiter);
        waiter_add(queue, waiter, item->user_id);
    }
    struct list *later = waiter->items.next;
    while (later != &waiter->items &&
           LIST_ITEM(later, struct group_item, link)->number < item->number)
        later = later->next;
    list_append(later, &item->link);
    list_remove(&waiter->turn);
    list_append(queue->turns.next, &waiter->turn);
}
