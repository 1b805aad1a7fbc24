// SPDX-License-Identifier: Apache-2.0
// The table of outbox rows in memory and their states.
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

void rows_init(struct rows *rows, size_t count_max)
{
    *rows = (struct rows){.count_max = count_max};
    list_init(&rows->waiting);
    list_init(&rows->waiting_later);
    list_init(&rows->deferred);
    list_init(&rows->done);
}

void rows_done(struct rows *rows)
{
    while (rows->table)
        rows_remove(rows, rows->table);
}

size_t rows_count(const struct rows *rows)
{
    return HASH_COUNT(rows->table);
}

struct row *rows_find(const struct rows *rows, const char *id)
{
    struct row *row;
    HASH_FIND_STR(rows->table, id, row);
    return row;
}

struct row *rows_add(struct rows *rows, const char *id)
{
    ASSERT(strlen(id) < OUTBOX_ID_SIZE);
    if (rows_count(rows) >= rows->count_max || rows_find(rows, id))
        return NULL;
    struct row *row = memory_must_new(sizeof *row);
    list_init(&row->link);
    memcpy(row->id, id, strlen(id));
    HASH_ADD_STR(rows->table, id, row);
    return row;
}

static void rows_unlink(struct rows *rows, struct row *row)
{
    list_remove(&row->link);
    ASSERT(row->state != ROW_DONE || rows->done_count > 0);
    ASSERT(row->state != ROW_WAITING || row->later || rows->waiting_count > 0);
    ASSERT(row->state != ROW_IN_LOG || !row->later || rows->later_in_log > 0);
    if (row->state == ROW_WAITING && !row->later)
        rows->waiting_count--;
    if (row->state == ROW_IN_LOG && row->later)
        rows->later_in_log--;
    if (row->state == ROW_DONE)
        rows->done_count--;
    row->state = ROW_NEW;
}

void rows_remove(struct rows *rows, struct row *row)
{
    rows_unlink(rows, row);
    ASSERT(!row->polled || rows->polled_count > 0);
    if (row->polled)
        rows->polled_count--;
    HASH_DEL(rows->table, row);
    for (size_t i = 0; i < row->event_count; i++)
        event_unref(row->events[i]);
    free(row->events);
    free(row);
}

void rows_set_polled(struct rows *rows, struct row *row)
{
    rows->polled_count += !row->polled;
    row->polled = true;
}

void rows_move(struct rows *rows, struct row *row, enum row_state state)
{
    rows_unlink(rows, row);
    row->state = state;
    if (state == ROW_WAITING) {
        list_append(row->later ? &rows->waiting_later : &rows->waiting, &row->link);
        rows->waiting_count += !row->later;
    } else if (state == ROW_IN_LOG) {
        rows->later_in_log += row->later;
    } else if (state == ROW_DEFERRED) {
        list_append(&rows->deferred, &row->link);
    } else if (state == ROW_DONE) {
        list_append(&rows->done, &row->link);
        rows->done_count++;
    }
}

struct row *rows_first_waiting(const struct rows *rows)
{
    const struct list *list = list_is_empty(&rows->waiting) && rows->later_in_log == 0
                                  ? &rows->waiting_later
                                  : &rows->waiting;

    return list_is_empty(list) ? NULL : LIST_ITEM(list->next, struct row, link);
}

void rows_retry_deferred(struct rows *rows)
{
    LIST_FOREACH(link, &rows->deferred)
    {
        rows_move(rows, LIST_ITEM(link, struct row, link), ROW_WAITING);
    }
}

void rows_take_done(struct rows *rows, size_t max, struct list *taken)
{
    for (; max > 0 && !list_is_empty(&rows->done); max--) {
        struct row *row = LIST_ITEM(rows->done.next, struct row, link);
        rows_unlink(rows, row);
        list_append(taken, &row->link);
    }
}

void rows_settle_done(struct rows *rows, struct list *taken, bool is_deleted)
{
    LIST_FOREACH(link, taken)
    {
        struct row *row = LIST_ITEM(link, struct row, link);
        if (is_deleted)
            rows_remove(rows, row);
        else
            rows_move(rows, row, ROW_DONE);
    }
}
