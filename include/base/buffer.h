// SPDX-License-Identifier: Apache-2.0
// A growable run of bytes with a maximum. A write past the maximum, or without memory, sets
// `failed` and drops what was to be written: writers append without checking each step and look at
// buffer_failed() once, at the end. Not thread safe: a buffer belongs to one thread at a time.
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

// The initialiser of an empty buffer with room for at most `max` bytes.
#define BUFFER(max)                                                                                \
    {                                                                                              \
        .length_max = (max)                                                                        \
    }

// Makes `b` empty with room for at most `length_max` bytes. Allocates nothing.
void buffer_init(struct buffer *b, size_t length_max);

// Frees what `b` holds. Takes NULL and an all-zero buffer.
void buffer_done(struct buffer *b);

// Makes `b` empty again, keeping its memory.
void buffer_clear(struct buffer *b);

// Room for `length` more bytes at data + length; NULL (and failed) when there is none. Does not
// change the length.
char *buffer_reserve(struct buffer *b, size_t length);

void buffer_append(struct buffer *b, const void *data, size_t length);
void buffer_append_text(struct buffer *b, const char *text);
void buffer_append_byte(struct buffer *b, char byte);
void buffer_append_int(struct buffer *b, int64_t number);
void buffer_append_format(struct buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Drops the first `length` bytes.
void buffer_consume(struct buffer *b, size_t length);

// Whether anything was ever dropped since init or clear.
bool buffer_failed(const struct buffer *b);

// The bytes as a heap string that the caller frees (NUL-terminated), leaving `b` empty. NULL when
// failed.
char *buffer_take_text(struct buffer *b);
