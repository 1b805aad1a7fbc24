// SPDX-License-Identifier: Apache-2.0
// Announces revoked tokens and changed users or apps: directly to all loops of this instance, and
// through Redis to all other instances. One per loop.
#pragma once

#include "base/cleanup.h"
#include "base/loop.h"
#include "cache/cache.h"

struct sessions;

// Called on the loop's thread with each id announced by any loop of the instance.
typedef void sessions_fn(void *arg, const char *id);

NODISCARD int sessions_new(struct loop *loop, struct cache *cache, sessions_fn *fn, void *arg,
                           struct sessions **ret_sessions);
// Sets the sessions of all loops, including this one. Call before the loops run; the array must
// outlive them.
void sessions_set_all(struct sessions *sessions, struct sessions *const *all, int count);
// Announces an id. On the loop's thread. While Redis is down, publishing is retried, for at most
// 100 s.
void sessions_publish(struct sessions *sessions, const char *id);
void sessions_free(struct sessions *sessions); // after the cache; NULL is allowed
