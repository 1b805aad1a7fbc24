// SPDX-License-Identifier: Apache-2.0
// Determines whether Postgres and Redis are connected on every loop of the instance.
#include "readiness.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>

struct loop_parts {
    const struct store *store;
    const struct cache *cache;
};

struct readiness {
    int max;
    int count;
    struct loop_parts loops[];
};

int readiness_new(int loops_max, struct readiness **ret_readiness)
{
    struct readiness *readiness =
        calloc(1, sizeof *readiness + (size_t)loops_max * sizeof readiness->loops[0]);

    if (!readiness)
        return -ERROR_MEMORY;
    readiness->max = loops_max;
    *ret_readiness = readiness;
    return 0;
}

void readiness_free(struct readiness *readiness)
{
    free(readiness);
}

void readiness_add(struct readiness *readiness, const struct store *store,
                   const struct cache *cache)
{
    ASSERT(readiness->count < readiness->max);
    readiness->loops[readiness->count++] = (struct loop_parts){.store = store, .cache = cache};
}

bool readiness_of_postgres(const struct readiness *readiness)
{
    for (int i = 0; i < readiness->count; i++)
        for (int lane = 0; lane < STORE_LANE_MAX; lane++)
            if (!store_is_up(readiness->loops[i].store, (enum store_lane)lane))
                return false;
    return true;
}

bool readiness_of_redis(const struct readiness *readiness)
{
    for (int i = 0; i < readiness->count; i++)
        if (!cache_is_up(readiness->loops[i].cache))
            return false;
    return true;
}
