// SPDX-License-Identifier: Apache-2.0
// Small allocations without which the program could not even report that it has no memory. Whatever
// a peer can size uses malloc() and answers -ERROR_MEMORY instead.
#pragma once

#include <stddef.h>

// `size` zeroed bytes on the heap, or `array` resized to `count` items of `size`; ends the process
// when there are none.
void *memory_must_new(size_t size);
void *memory_must_resize(void *array, size_t count, size_t size);
