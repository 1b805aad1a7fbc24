// SPDX-License-Identifier: Apache-2.0
// A ring buffer of the commands that await a reply.
#include "calls.h"

#include "base/check.h"
#include "base/memory.h"

#include <string.h>

enum { CAPACITY_FIRST = 16 };

// Doubles the ring. Moves the part that wrapped around to the beginning behind the old end.
static void calls_grow(struct calls *calls)
{
    size_t old = calls->capacity;
    calls->capacity = old ? 2 * old : CAPACITY_FIRST;
    calls->ring = memory_must_resize(calls->ring, calls->capacity, sizeof *calls->ring);
    if (calls->first > 0)
        memcpy(calls->ring + old, calls->ring, calls->first * sizeof *calls->ring);
}

void calls_push(struct calls *calls, const struct cache_call *call)
{
    if (calls->count == calls->capacity)
        calls_grow(calls);
    ASSERT(calls->count < calls->capacity && calls->first < calls->capacity);
    calls->ring[(calls->first + calls->count++) & (calls->capacity - 1)] = *call;
}

bool calls_pop(struct calls *calls, struct cache_call *ret_call)
{
    if (calls->count == 0)
        return false;
    *ret_call = calls->ring[calls->first];
    calls->first = (calls->first + 1) & (calls->capacity - 1);
    calls->count--;
    return true;
}

const struct cache_call *calls_first(const struct calls *calls)
{
    return calls->count > 0 ? &calls->ring[calls->first] : NULL;
}

size_t calls_count(const struct calls *calls)
{
    return calls->count;
}

void calls_done(struct calls *calls)
{
    free(calls->ring);
    *calls = (struct calls){0};
}
