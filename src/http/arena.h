// SPDX-License-Identifier: Apache-2.0
// Memory that lives as long as one request: many small pieces, freed together. The first KiB is
// inside the arena.
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

// `size` bytes that are valid until arena_done(), aligned to 16. NULL without memory.
void *arena_alloc(struct arena *arena, size_t size);

// A NUL-terminated copy of `length` bytes. NULL without memory.
char *arena_copy(struct arena *arena, const char *text, size_t length);
