// SPDX-License-Identifier: Apache-2.0
// Decodes a chunked body (RFC 9112, 7.1), strictly: each line ends with CR LF, and a chunk's size
// is digits only, perhaps with an extension behind a semicolon. Extensions and trailers are
// ignored. No connection, no memory of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chunks_state {
    CHUNKS_SIZE, // a chunk's size is coming
    CHUNKS_EXTENSION,
    CHUNKS_SIZE_LF,
    CHUNKS_DATA,
    CHUNKS_DATA_CR, // the line end behind the data
    CHUNKS_DATA_LF,
    CHUNKS_LINE, // the beginning of a trailer's line, or of the empty one
    CHUNKS_NAME,
    CHUNKS_VALUE,
    CHUNKS_VALUE_LF,
    CHUNKS_LAST_LF,
    CHUNKS_END,
    CHUNKS_BAD,
};

// All zero at the beginning of a body.
struct chunks {
    enum chunks_state state;
    int digits;         // of the size at hand
    int line_bytes;     // of what is no data, since the last data
    uint64_t length;    // of the chunk's data that are still to come
    const char *reason; // why the framing is bad (static text), else NULL
};

// Reads lines and then the next piece of data, of which *ret_size bytes (0: none) are at *ret_data.
// Returns how many bytes that took: less than `length` when more data may follow, or when the body
// ends or is bad there.
size_t chunks_read(struct chunks *chunks, const char *text, size_t length, const char **ret_data,
                   size_t *ret_size);

// Whether the body is complete.
bool chunks_at_end(const struct chunks *chunks);
