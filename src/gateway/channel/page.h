// SPDX-License-Identifier: Apache-2.0
// Events of a channel read back from Postgres, a page at a time.
#pragma once

#include "base/buffer.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;

// One event. Its texts belong to the result.
struct page_row {
    int64_t seq;
    int64_t event_ts; // of a post: its ts
    enum event_kind kind;
    const char *note; // of a NOTE: the type of its frame
    enum channel_type channel_type;
    const char *actor;
    const struct result *result;
    int row;
};

// Reads at most `count` events after `after_seq`, in order. The caller has called gateway_ask().
void page_ask(struct gateway *gateway, enum store_lane lane, const char *channel_id,
              int64_t after_seq, int count, store_fn *fn, void *arg);

// The same for several channels, `count` events of each, as `viewer` sees their messages; the rows
// come in the order of `starts`.
struct page_start {
    const char *channel_id;
    int64_t after_seq;
};
void pages_read(struct gateway *gateway, enum store_lane lane, const struct page_start *starts,
                int start_count, int count, const char *viewer, store_fn *fn, void *arg);

// The rows of one channel in the result. Start with first and end 0.
struct page {
    const struct result *result;
    int first;
    int end;
};
// Advances to the rows of channel `number` (1, 2 …); there may be none.
void page_next(struct page *page, int64_t number);

// -ERROR_INVALID_ARGUMENTS: an unknown kind.
NODISCARD int page_row_read(const struct result *result, int row, struct page_row *ret_row);
const char *page_row_type(const struct page_row *row); // the type of its frame
// Appends its frame; check buffer_failed().
void page_frame_write(const struct page_row *row, const char *workspace_id, const char *channel_id,
                      struct buffer *out);
