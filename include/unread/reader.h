// SPDX-License-Identifier: Apache-2.0
// How much a member has unread: what the channel's strategy has in Redis, when that is as new as
// what the caller already knows from Postgres, else what Postgres says, which then mends Redis. So
// a wiped, stale or absent Redis never shows as a number. One reader a loop; all on the loop's
// thread.
#pragma once

#include "cache/cache.h"
#include "store/store.h"
#include "unread/view.h"

struct reader;

NODISCARD int reader_new(struct store *store, struct cache *cache, int rebuilds_max,
                         struct reader **ret_reader);
void reader_free(struct reader *reader); // after the store and the cache

// Reads the unread state of `view->user_id` in `view->channel_id` into the rest of `*view`. What
// the caller must have read from Postgres before: head, member and singles, muted, type: a
// copy of another generation, seq, epoch or cursor is not believed. `exact`: view->unread is known
// by that already. `view` belongs to the caller until `fn` was called (once; at once, from inside
// this call, when nothing has to be asked).
typedef void unread_read_fn(void *arg, int r);
void unread_read(struct reader *reader, struct unread_view *view, bool exact, unread_read_fn *fn,
                 void *arg);
