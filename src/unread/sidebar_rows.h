// SPDX-License-Identifier: Apache-2.0
// A user's channels in memory: entries in order, their JSON in one run of bytes.
#pragma once

#include "base/buffer.h"
#include "store/statement.h"
#include "unread/sidebar.h"

// The columns that a row is made of; entry_read() knows their order. NULLs are what is usual: they
// cost nothing on the way.
#define SIDEBAR_ROW                                                                                \
    "r.channel_id, r.name, NULLIF(r.type, 0), NULLIF(r.epoch, 0), NULLIF(r.ts, 0),"                \
    " r.head_seq, NULLIF(r.updated_ts, 0), NULLIF(r.latest_ts, r.updated_ts), r.latest_user,"      \
    " r.latest_preview, r.unread, NULLIF(r.muted, false), NULLIF(r.mentions, 0),"                  \
    " NULLIF(NOT r.active OR r.is_archived OR NOT r.is_open, false), greatest(r.member_changed, "  \
    "r.channel_changed), NULLIF(r.strategy_in_use, 0)"

enum { RUNS_MAX = 40 };

struct sidebar_rows {
    struct sidebar_state state; // first: what the outside sees; entries are those below
    struct sidebar_entry *entries;
    struct sidebar_entry *spare; // as many, for merging; NULL between uses
    int capacity;
    int runs[RUNS_MAX]; // sorted runs of entries, while it is read; each ends here
    int run_count;
    struct buffer bytes;
    size_t wasted;       // bytes of entries that were replaced
    const char *user_id; // whose
    bool failed;         // without memory
};

void sidebar_rows_init(struct sidebar_rows *rows, const char *user_id); // a text that outlives it
void sidebar_rows_done(struct sidebar_rows *rows);

// Adds a chunk of channels that are not in it.
void sidebar_rows_add(struct sidebar_rows *rows, const struct result *result);
// After the last chunk: all in order.
void sidebar_rows_sort(struct sidebar_rows *rows);
// Replaces, in what is in order, the channels of `result`, whose row begins at `column` (rows that
// are NULL there are none).
void sidebar_rows_apply(struct sidebar_rows *rows, const struct result *result, int column);

// -1 when `a` comes before `b`.
int entry_compare(const struct sidebar_rows *rows, const struct sidebar_entry *a,
                  const struct sidebar_entry *b);
size_t sidebar_rows_size(const struct sidebar_rows *rows);
