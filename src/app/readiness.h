// SPDX-License-Identifier: Apache-2.0
// Whether what each loop of an instance depends on is there: a connection goes to any of the loops.
#pragma once

#include "base/cleanup.h"
#include "cache/cache.h"
#include "store/store.h"

#include <stdbool.h>

struct readiness;

NODISCARD int readiness_new(int loops_max, struct readiness **ret_readiness);
void readiness_free(struct readiness *readiness); // takes NULL

// Adds what a loop uses, which must outlive what looks. Before the first loop runs.
void readiness_add(struct readiness *readiness, const struct store *store,
                   const struct cache *cache);

// Whether all of them are connected now. Any thread.
bool readiness_of_postgres(const struct readiness *readiness);
bool readiness_of_redis(const struct readiness *readiness);
