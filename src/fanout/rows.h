// SPDX-License-Identifier: Apache-2.0
// The outbox rows known to a relay: a table by id, and a list for each state that is searched for.
// Not thread-safe: protected by the relay's lock.
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

enum row_state {
    ROW_NEW,
    ROW_WAITING,  // for the relay's thread, in order of submission
    ROW_DEFERRED, // retried at the next poll
    ROW_IN_LOG,
    ROW_DONE // to be deleted
};

struct row {
    UT_hash_handle hh;
    struct list link;
    enum row_state state;
    bool polled; // found by polling: its writer may still look it up
    bool later;  // waits until no other row does, and none of its kind is in the log
    int tries;
    struct event **events; // of a waiting row; owned; NULL: to be read back
    size_t event_count;
    char id[OUTBOX_ID_SIZE];
};

struct rows {
    struct row *table;
    size_t count_max;
    struct list waiting;
    struct list waiting_later;
    struct list deferred;
    struct list done;
    size_t waiting_count; // without waiting_later
    size_t later_in_log;
    size_t done_count;
    int64_t polled_count; // in any state
};

void rows_init(struct rows *rows, size_t count_max);
void rows_done(struct rows *rows); // frees all rows

size_t rows_count(const struct rows *rows);
struct row *rows_find(const struct rows *rows, const char *id);
// Adds a new row. NULL: too many rows, or this id exists.
struct row *rows_add(struct rows *rows, const char *id);
void rows_remove(struct rows *rows, struct row *row); // frees it
void rows_set_polled(struct rows *rows, struct row *row);
void rows_move(struct rows *rows, struct row *row, enum row_state state);

struct row *rows_first_waiting(const struct rows *rows);
void rows_retry_deferred(struct rows *rows);

// Moves at most `max` done rows to the list `taken`; they stay in the table. Then call
// rows_settle_done() with `is_deleted`: whether they were deleted from Postgres.
void rows_take_done(struct rows *rows, size_t max, struct list *taken);
void rows_settle_done(struct rows *rows, struct list *taken, bool is_deleted);
