// SPDX-License-Identifier: Apache-2.0
// An intrusive doubly linked list: the links are members of the items, so nothing is allocated.
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *previous;
};

#define LIST_ITEM(link, type, member) ((type *)(void *)((char *)(link) - offsetof(type, member)))

// Iterates over the list `head`. The loop body may remove the current item.
#define LIST_FOREACH(link, head)                                                                   \
    for (struct list *link = (head)->next, *link##_next = link->next; link != (head);              \
         link = link##_next, link##_next = link->next)

static inline void list_init(struct list *list)
{
    list->next = list;
    list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->next == list;
}

// Visits all items.
static inline size_t list_length(const struct list *list)
{
    size_t length = 0;

    LIST_FOREACH(link, list)
    {
        length++;
    }
    return length;
}

// `link` must not be in a list: it is all-zero, initialised by list_init(), or removed.
static inline void list_append(struct list *list, struct list *link)
{
    ASSERT(!link->next || link->next == link);
    ASSERT(list->previous->next == list);
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

// Unlinks `link`, which may then be appended again. `link` may be in no list if list_init()
// initialised it.
static inline void list_remove(struct list *link)
{
    ASSERT(link->next->previous == link && link->previous->next == link);
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

// Moves all items of `from` to the end of `to`.
static inline void list_append_all(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    list_init(from);
}

// Moves at most `most` items from the front of `from` to the end of `to`.
static inline void list_move(struct list *to, struct list *from, size_t most)
{
    LIST_FOREACH(link, from)
    {
        if (most-- == 0)
            break;
        list_remove(link);
        list_append(to, link);
    }
}
