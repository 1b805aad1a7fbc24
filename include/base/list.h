// SPDX-License-Identifier: Apache-2.0
// An intrusive doubly linked list: the links live in the items, nothing is allocated.
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *previous;
};

#define LIST_ITEM(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

// Walks the list `head`; the current item may be removed while walking.
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

// `link` must be in no list: all-zero, or list_init-ed, or removed.
static inline void list_append(struct list *list, struct list *link)
{
    ASSERT(!link->next || link->next == link);
    ASSERT(list->previous->next == list);
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

// Unlinks `link`, which may then be linked anew; a link that was only ever list_init-ed may be
// removed too.
static inline void list_remove(struct list *link)
{
    ASSERT(link->next->previous == link && link->previous->next == link);
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

// Moves all of `from` to the end of `to`.
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
