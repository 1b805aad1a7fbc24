// SPDX-License-Identifier: Apache-2.0
// A growable byte buffer with a maximum size. A write that exceeds the maximum or runs out of
// memory sets `failed` and is dropped, as are all later writes. So writers append without checking
// each step and call buffer_failed() once, at the end. Not thread-safe: one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *data; // heap, NULL while empty; not NUL-terminated
    size_t length;
    size_t capacity;
    size_t length_max;
    bool failed;
};

// Initialiser for an empty buffer of at most `max` bytes.
#define BUFFER(max) {.length_max = (max)}

// Initialises `b` as an empty buffer of at most `length_max` bytes. Allocates nothing.
void buffer_init(struct buffer *b, size_t length_max);

// Frees the contents of `b`. Accepts NULL and an all-zero buffer.
void buffer_done(struct buffer *b);

// Empties `b` and resets `failed`; keeps the memory.
void buffer_clear(struct buffer *b);

// buffer_reserve() for bytes that there is no room for yet.
char *buffer_reserve_more(struct buffer *b, size_t length);

// Reserves `length` bytes at data + length without changing the length. NULL, and `failed` set, if
// they do not fit. Inline, since all that writes JSON calls it for each value.
static inline char *buffer_reserve(struct buffer *b, size_t length)
{
    if (!b->failed && b->data && length <= b->capacity - b->length)
        return b->data + b->length;
    return buffer_reserve_more(b, length);
}

void buffer_append(struct buffer *b, const void *data, size_t length);
void buffer_append_text(struct buffer *b, const char *text);
void buffer_append_byte(struct buffer *b, char byte);
void buffer_append_int(struct buffer *b, int64_t number);
void buffer_append_format(struct buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Removes the first `length` bytes.
void buffer_consume(struct buffer *b, size_t length);

// Whether any write has failed since buffer_init() or buffer_clear().
bool buffer_failed(const struct buffer *b);

// Returns the contents as a NUL-terminated heap string, owned by the caller, and empties `b`. NULL
// if `failed` is set or memory is short.
char *buffer_take_text(struct buffer *b);
