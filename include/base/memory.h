// SPDX-License-Identifier: Apache-2.0
// For small allocations without which the program could not even report that it is out of memory.
// Where there is none for them they are served from a reserve of 1 MiB, which is made again later.
// Anything whose size a peer can choose uses malloc() and answers -ERROR_MEMORY instead. Any
// thread.
#pragma once

#include <stddef.h>

// `size` zeroed bytes on the heap; `array` resized to `count` items of `size` bytes. End the
// process when the reserve is used up, too.
void *memory_must_new(size_t size);
void *memory_must_resize(void *array, size_t count, size_t size);
