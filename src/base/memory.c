// SPDX-License-Identifier: Apache-2.0
// Allocations that must not fail, served from a reserve when memory runs out.
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

enum { RESERVE_BYTES = 1 << 20 };

// Memory held back for when malloc() fails.
static void *_Atomic reserve;

// Allocates the reserve, initially and again after its use, as soon as memory is available.
static void reserve_refill(void)
{
    if (atomic_load_explicit(&reserve, memory_order_relaxed))
        return;
    void *none = NULL;
    void *made = malloc(RESERVE_BYTES);
    if (!atomic_compare_exchange_strong(&reserve, &none, made))
        free(made);
}

static void reserve_use(void)
{
    log_write(LOG_ERROR, "base", "out of memory: using the reserve");
    free(atomic_exchange(&reserve, NULL));
}

static void *memory_checked(void *memory)
{
    if (memory)
        return memory;
    log_write(LOG_ERROR, "base", "out of memory");
    abort();
}

void *memory_must_new(size_t size)
{
    void *memory = calloc(1, size);
    if (memory) {
        reserve_refill();
        return memory;
    }
    reserve_use();
    return memory_checked(calloc(1, size));
}

void *memory_must_resize(void *array, size_t count, size_t size)
{
    void *memory = reallocarray(array, count, size);
    if (memory) {
        reserve_refill();
        return memory;
    }
    reserve_use();
    return memory_checked(reallocarray(array, count, size));
}
