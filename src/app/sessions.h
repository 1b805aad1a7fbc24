// SPDX-License-Identifier: Apache-2.0
// Tells that a token ended, or a user or an app changed: all loops of this instance at once, all
// other instances by Redis. One per loop.
#pragma once

#include "base/cleanup.h"
#include "base/loop.h"
#include "cache/cache.h"

struct sessions;

// Called on the loop's thread with each id that was told by any loop of the instance.
typedef void sessions_fn(void *arg, const char *id);

NODISCARD int sessions_new(struct loop *loop, struct cache *cache, sessions_fn *fn, void *arg,
                           struct sessions **ret_sessions);
// Those of all loops, this one too; before the loops run. The array must outlive them.
void sessions_set_all(struct sessions *sessions, struct sessions *const *all, int count);
// On the loop's thread. What Redis cannot be told now it is told as soon as it is there.
void sessions_tell(struct sessions *sessions, const char *id);
void sessions_free(struct sessions *sessions); // after the cache; takes NULL
