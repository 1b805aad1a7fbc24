// SPDX-License-Identifier: Apache-2.0
// A user's channels in memory: entries in order, their JSON in one run of bytes.
#pragma once

#include "base/buffer.h"
#include "store/statement.h"
#include "unread/sidebar.h"

// The columns that a row is made of; row_read() knows their order. Each column costs as much as
// finding the row does, so what is seldom told comes together in one, which is NULL as a rule.
#define SIDEBAR_ROW                                                                                \
    "r.channel_id, r.name, r.head_seq, NULLIF(r.updated_ts, 0), NULLIF(r.ts, 0), r.latest_user,"   \
    " r.latest_preview, NULLIF(r.unread, 0), greatest(r.member_changed, r.channel_changed),"       \
    " CASE WHEN r.type <> 0 OR r.strategy_in_use <> 0 OR r.epoch <> 0"                             \
    " OR r.latest_ts <> r.updated_ts OR r.muted OR NOT r.active OR r.is_archived OR NOT r.is_open" \
    " OR r.mentions <> 0 THEN ARRAY[r.type, r.strategy_in_use, r.epoch, r.latest_ts,"              \
    " r.muted::integer, (NOT r.active OR r.is_archived OR NOT r.is_open)::integer, r.mentions]"    \
    "::bigint[] END"

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

// Adds `count` rows of a result from `first` on: channels that are not in it.
void sidebar_rows_add(struct sidebar_rows *rows, const struct result *result, int first, int count);
// After the last chunk: all in order.
void sidebar_rows_sort(struct sidebar_rows *rows);
// Replaces, in what is in order, the channels of `result`, whose row begins at `column` (rows that
// are NULL there are none).
void sidebar_rows_apply(struct sidebar_rows *rows, const struct result *result, int column);

size_t sidebar_rows_size(const struct sidebar_rows *rows);
