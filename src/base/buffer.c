// SPDX-License-Identifier: Apache-2.0
// A growable byte buffer with a maximum and a sticky error flag.
#include "base/buffer.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 256, INT_LENGTH_MAX = 20 };

void buffer_init(struct buffer *b, size_t length_max)
{
    *b = (struct buffer){.length_max = length_max};
}

void buffer_done(struct buffer *b)
{
    if (!b)
        return;
    free(b->data);
    buffer_init(b, b->length_max);
}

void buffer_clear(struct buffer *b)
{
    b->length = 0;
    b->failed = false;
}

static bool buffer_grow(struct buffer *b, size_t needed)
{
    size_t capacity = b->capacity < CAPACITY_FIRST ? CAPACITY_FIRST : b->capacity;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > b->length_max)
        capacity = b->length_max;
    char *data = realloc(b->data, capacity);
    if (!data)
        return false;
    b->data = data;
    b->capacity = capacity;
    return true;
}

char *buffer_reserve_more(struct buffer *b, size_t length)
{
    ASSERT(b->length <= b->capacity);
    // After one failed write all later writes fail too, so that the text never has a gap.
    if (b->failed || length > b->length_max - b->length || !buffer_grow(b, b->length + length)) {
        b->failed = true;
        return NULL;
    }
    return b->data + b->length;
}

void buffer_append(struct buffer *b, const void *data, size_t length)
{
    if (length == 0)
        return;
    char *to = buffer_reserve(b, length);
    if (!to)
        return;
    memcpy(to, data, length);
    b->length += length;
}

void buffer_append_text(struct buffer *b, const char *text)
{
    buffer_append(b, text, strlen(text));
}

void buffer_append_byte(struct buffer *b, char byte)
{
    char *to = buffer_reserve(b, 1);
    if (!to)
        return;
    *to = byte;
    b->length++;
}

void buffer_append_int(struct buffer *b, int64_t number)
{
    char digits[INT_LENGTH_MAX];
    char *first = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--first = '-';
    buffer_append(b, first, (size_t)(digits + sizeof digits - first));
}

static void append_long(struct buffer *b, const char *format, va_list arguments)
{
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    if (length < 0) {
        b->failed = true;
        return;
    }
    buffer_append(b, text, (size_t)length);
    free(text);
}

void buffer_append_format(struct buffer *b, const char *format, ...)
{
    char text[512];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(text, sizeof text, format, arguments);
    if (length >= (int)sizeof text)
        append_long(b, format, again);
    else if (length >= 0)
        buffer_append(b, text, (size_t)length);
    else
        b->failed = true;
    va_end(again);
    va_end(arguments);
}

void buffer_consume(struct buffer *b, size_t length)
{
    ASSERT(length <= b->length);
    b->length -= length;
    if (b->length > 0 && length > 0)
        memmove(b->data, b->data + length, b->length);
}

bool buffer_failed(const struct buffer *b)
{
    return b->failed;
}

char *buffer_take_text(struct buffer *b)
{
    char *text = b->failed ? NULL : realloc(b->data, b->length + 1);
    if (!text) {
        buffer_done(b);
        return NULL;
    }
    text[b->length] = '\0';
    buffer_init(b, b->length_max);
    return text;
}
