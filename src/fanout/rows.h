// SPDX-License-Identifier: Apache-2.0
// The outbox rows that a relay knows of: a table by id, and a list for each state in which somebody
// looks for them. Not thread safe: under the relay's lock.
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

enum row_state {
    ROW_NEW,
    ROW_WAITING,  // for the relay's thread, in the order of submission
    ROW_DEFERRED, // to be tried again at the next poll
    ROW_IN_LOG,
    ROW_DONE // to be deleted
};

struct row {
    UT_hash_handle hh;
    struct list link;
    enum row_state state;
    bool polled; // found in Postgres: its writer may still ask for it
    bool later;  // waits until no other does, and none of its kind is in the log
    int tries;
    struct event **events; // of a waiting row: owned, NULL when they must be read back
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
    size_t waiting_count; // without those that wait for later
    size_t later_in_log;
    size_t done_count;
    int64_t polled_count; // in any state
};

void rows_init(struct rows *rows, size_t count_max);
void rows_done(struct rows *rows); // frees them all

size_t rows_count(const struct rows *rows);
struct row *rows_find(const struct rows *rows, const char *id);
// A new row; NULL when there are too many, or one with this id.
struct row *rows_add(struct rows *rows, const char *id);
void rows_remove(struct rows *rows, struct row *row); // frees it
void rows_set_polled(struct rows *rows, struct row *row);
void rows_move(struct rows *rows, struct row *row, enum row_state state);

struct row *rows_first_waiting(const struct rows *rows);
void rows_retry_deferred(struct rows *rows);

// Moves at most `max` done rows to the list `taken`; they stay in the table. rows_settle_done()
// then says whether they were deleted from Postgres.
void rows_take_done(struct rows *rows, size_t max, struct list *taken);
void rows_settle_done(struct rows *rows, struct list *taken, bool gone);
