// SPDX-License-Identifier: Apache-2.0
// How much a member has unread where posts after the cursor were deleted, which the rows of channel
// and member alone do not tell: from Redis when its copy is as new as what the caller already knows
// from Postgres, else from Postgres, which then mends the copy. So a wiped, stale or absent Redis
// never shows as a number.
#pragma once

#include "cache/cache.h"
#include "store/store.h"
#include "unread/view.h"

// Reads the unread state of `view->user_id` in `view->channel_id` into the rest of `*view`. What
// the caller must have read from Postgres before: view->head.seq, view->member.epoch, .ts, .posts,
// .active and view->muted, type: a copy of another seq, epoch or cursor is not believed.
// `view` belongs to the caller until `fn` was called (once, on a later turn).
typedef void unread_read_fn(void *arg, int r);
void unread_read(struct cache *cache, struct store *store, struct unread_view *view,
                 unread_read_fn *fn, void *arg);
