// SPDX-License-Identifier: Apache-2.0
// Finds a member's unread count: from what the channel's strategy keeps in Redis if that is as new
// as what the caller has read from Postgres; otherwise from Postgres, and then updates Redis. So a
// wiped, stale or missing Redis never shows in a number. One reader per loop; all on the loop's
// thread.
#pragma once

#include "cache/cache.h"
#include "store/store.h"
#include "unread/view.h"

struct reader;

NODISCARD int reader_new(struct store *store, struct cache *cache, int rebuilds_max,
                         struct reader **ret_reader);
void reader_free(struct reader *reader); // after the store and the cache

// Reads the unread state of `view->user_id` in `view->channel_id` into the rest of `*view`. The
// caller must have read head, member, singles, muted and type from Postgres: a copy of another
// generation, seq, epoch or cursor is not believed. `exact`: view->unread follows from these
// already; Redis is then compared with it, and updated if it differs, without anybody waiting.
// `view` must stay valid until `fn` was called, which happens once, and from inside this call if
// nothing has to be asked.
typedef void unread_read_fn(void *arg, int r);
void unread_read(struct reader *reader, struct unread_view *view, bool exact, unread_read_fn *fn,
                 void *arg);
