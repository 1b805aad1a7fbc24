// SPDX-License-Identifier: Apache-2.0
// A user's channels in memory: sorted entries, with their JSON in one buffer.
#pragma once

#include "base/buffer.h"
#include "store/statement.h"
#include "unread/sidebar.h"

// The columns of a row, in the order row_read() expects. Sending a column costs as much as finding
// the row, so rarely needed values share one column, which is NULL where the row is usual.
#define SIDEBAR_ROW                                                                                \
    "r.channel_id, r.name, r.head_seq, NULLIF(r.updated_ts, 0), NULLIF(r.ts, 0), r.latest_user,"   \
    " r.latest_preview, NULLIF(r.unread, 0), greatest(r.member_changed, r.channel_changed),"       \
    " CASE WHEN NOT r.is_usual THEN ARRAY[r.type, r.strategy_in_use, r.epoch, r.latest_ts,"        \
    " r.muted::integer, (NOT r.active OR r.is_archived OR NOT r.is_open)::integer, r.mentions, "   \
    "r.notify]::bigint[] END"

enum { RUNS_MAX = 40 };

struct sidebar_rows {
    struct sidebar_state state; // must be first: the public part; its entries are those below
    struct sidebar_entry *entries;
    struct sidebar_entry *spare; // same capacity, for merging; NULL between uses
    int capacity;
    struct sorted_run {
        int at, end;
    } runs[RUNS_MAX]; // adjacent runs of sorted entries, while the list is being read
    int run_count;
    int merged; // entries already in their final place in `spare`
    struct buffer bytes;
    size_t wasted;       // bytes of replaced entries
    const char *user_id; // owner of the list
    bool failed;         // out of memory
};

void sidebar_rows_init(struct sidebar_rows *rows,
                       const char *user_id); // user_id must outlive `rows`
// Drops all rows and keeps their memory for the next ones: to return tens of megabytes to the
// kernel takes milliseconds.
void sidebar_rows_clear(struct sidebar_rows *rows);
void sidebar_rows_done(struct sidebar_rows *rows);

// Adds `count` rows of a result, starting at `first`, of channels not added before.
void sidebar_rows_add(struct sidebar_rows *rows, const struct result *result, int first, int count);
// Call repeatedly after the last chunk: sorts another portion of the entries. True: done.
bool sidebar_rows_sort(struct sidebar_rows *rows);
// Replaces the channels in `result`, whose columns start at `column` (rows that are NULL there are
// skipped), and keeps the list sorted.
void sidebar_rows_apply(struct sidebar_rows *rows, const struct result *result, int column);

size_t sidebar_rows_size(const struct sidebar_rows *rows);
