// SPDX-License-Identifier: Apache-2.0
// Determines a member's unread count. Uses what the channel's strategy keeps in Redis if it matches
// the caller's rows from Postgres; otherwise reads Postgres and updates Redis. So a wiped, stale or
// missing Redis never affects a count. One reader per loop; all on the loop's thread.
#pragma once

#include "cache/cache.h"
#include "store/store.h"
#include "unread/view.h"

struct reader;

NODISCARD int reader_new(struct store *store, struct cache *cache, int rebuilds_max,
                         struct reader **ret_reader);
void reader_free(struct reader *reader); // after the store and the cache

// Completes `*view`, the unread state of `view->user_id` in `view->channel_id`. The caller has read
// head, member, singles, muted and type from Postgres; a copy in Redis with another generation,
// seq, epoch or cursor is ignored. `exact`: view->unread already follows from these; Redis is then
// compared with it in the background, and updated if it differs. `view` must stay valid until `fn`
// was called, which happens once, and inside this call if nothing has to be read.
typedef void unread_read_fn(void *arg, int r);
void unread_read(struct reader *reader, struct unread_view *view, bool exact, unread_read_fn *fn,
                 void *arg);
