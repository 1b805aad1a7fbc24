// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <stdlib.h>

#include "base/log.h"

static void *memory_checked(void *memory)
{
    if (memory)
        return memory;
    log_write(LOG_ERROR, "base", "out of memory");
    abort();
}

void *memory_must_new(size_t size)
{
    return memory_checked(calloc(1, size));
}

void *memory_must_resize(void *array, size_t count, size_t size)
{
    return memory_checked(reallocarray(array, count, size));
}
