// SPDX-License-Identifier: Apache-2.0
// What the targets share. Each is one file with LLVMFuzzerTestOneInput(): it must not crash, and
// what it asserts must hold for every input. The bytes lie in a heap block of just their size.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The bytes as a heap string with a NUL behind them, and nothing else: the caller frees it.
static inline char *fuzz_text(const void *data, size_t size)
{
    char *text = malloc(size + 1);
    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

// The bytes in a heap block of just their size: the caller frees it.
static inline char *fuzz_bytes(const void *data, size_t size)
{
    char *bytes = malloc(size);
    assert(bytes || size == 0);
    if (size > 0)
        memcpy(bytes, data, size);
    return bytes;
}

// The length of the first line; the rest begins behind its LF, or is empty.
static inline size_t fuzz_line(const uint8_t *data, size_t size, size_t *ret_rest)
{
    const uint8_t *feed = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t length = feed ? (size_t)(feed - data) : size;
    *ret_rest = feed ? length + 1 : size;
    return length;
}
