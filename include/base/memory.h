// SPDX-License-Identifier: Apache-2.0
// Small allocations that must not fail, because without them the program could not even report that
// it is out of memory. When malloc() fails they use a reserve of 1 MiB, which is refilled later.
// Anything whose size a peer can choose uses malloc() and returns -ERROR_MEMORY instead. Any
// thread.
#pragma once

#include <stddef.h>

// `size` zeroed bytes; `array` resized to `count` items of `size` bytes. The caller frees them with
// free(). Both end the process if the reserve is exhausted, too.
void *memory_must_new(size_t size);
void *memory_must_resize(void *array, size_t count, size_t size);
