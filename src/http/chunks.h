// SPDX-License-Identifier: Apache-2.0
// A strict decoder of chunked bodies (RFC 9112, 7.1). Every line must end with CR LF, and a chunk
// size must consist of hex digits, optionally followed by an extension after a semicolon.
// Extensions and trailers are ignored. No I/O, no allocation.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chunks_state {
    CHUNKS_SIZE, // reading a chunk's size
    CHUNKS_EXTENSION,
    CHUNKS_SIZE_LF,
    CHUNKS_DATA,
    CHUNKS_DATA_CR, // the line end after the data
    CHUNKS_DATA_LF,
    CHUNKS_LINE, // the first byte of a trailer line, or the final empty line
    CHUNKS_NAME,
    CHUNKS_VALUE,
    CHUNKS_VALUE_LF,
    CHUNKS_LAST_LF,
    CHUNKS_END,
    CHUNKS_BAD,
};

// All-zero at the start of a body.
struct chunks {
    enum chunks_state state;
    int digits;         // digits of the current size
    int line_bytes;     // bytes other than data since the last data
    uint64_t length;    // bytes left of the chunk's data
    const char *reason; // why the framing is invalid (static text), or NULL
};

// Parses lines up to the next piece of data: *ret_size bytes (0: none) at *ret_data. Returns the
// number of bytes consumed: less than `length` if more data may follow, or if the body ended or is
// invalid there.
size_t chunks_read(struct chunks *chunks, const char *text, size_t length, const char **ret_data,
                   size_t *ret_size);

// Whether the body is complete.
bool chunks_at_end(const struct chunks *chunks);
