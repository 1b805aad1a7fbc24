// SPDX-License-Identifier: Apache-2.0
// An arena: memory that is freed with its request.
#include "call/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_CHUNK = 4096 };

struct arena_chunk {
    struct arena_chunk *previous;
    _Alignas(ARENA_ALIGN) char data[];
};

void arena_init(struct arena *arena)
{
    arena->chunks = NULL;
    arena->next = arena->first;
    arena->left = sizeof arena->first;
}

void arena_done(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->previous;
        free(chunk);
    }
}

static char *chunk_new(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        return NULL;
    chunk->previous = arena->chunks;
    arena->chunks = chunk;
    return chunk->data;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    // A large piece gets its own chunk, so that the rest of the current chunk stays usable.
    if (size > ARENA_CHUNK / 4 && size > arena->left)
        return chunk_new(arena, size);
    if (size > arena->left) {
        char *data = chunk_new(arena, ARENA_CHUNK);
        if (!data)
            return NULL;
        arena->next = data;
        arena->left = ARENA_CHUNK;
    }
    char *piece = arena->next;
    arena->next += size;
    arena->left -= size;
    return piece;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}
