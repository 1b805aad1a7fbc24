// SPDX-License-Identifier: Apache-2.0
// Whether all loops of an instance are connected to Postgres and Redis: a client's connection may
// go to any loop.
#pragma once

#include "base/cleanup.h"
#include "cache/cache.h"
#include "store/store.h"

#include <stdbool.h>

struct readiness;

NODISCARD int readiness_new(int loops_max, struct readiness **ret_readiness);
void readiness_free(struct readiness *readiness); // NULL is allowed

// Adds a loop's store and cache, which must outlive all checks. Call before the first loop runs.
void readiness_add(struct readiness *readiness, const struct store *store,
                   const struct cache *cache);

// Whether all of them are connected now. Any thread.
bool readiness_of_postgres(const struct readiness *readiness);
bool readiness_of_redis(const struct readiness *readiness);
