// SPDX-License-Identifier: Apache-2.0
// An arena: many small allocations of one request, freed together. The first KiB is part of the
// arena itself.
#pragma once

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    char *next;
    size_t left;
    _Alignas(16) char first[1024];
};

void arena_init(struct arena *arena);
void arena_done(struct arena *arena);

// Allocates `size` bytes, aligned to 16 and valid until arena_done(). NULL if out of memory.
void *arena_alloc(struct arena *arena, size_t size);

// Returns a NUL-terminated copy of `length` bytes. NULL if out of memory.
char *arena_copy(struct arena *arena, const char *text, size_t length);
