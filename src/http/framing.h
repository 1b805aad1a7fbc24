// SPDX-License-Identifier: Apache-2.0
// The framing of a request's body: how its end is found. By its length, or in chunks.
#pragma once

#include "chunks.h"

#include "http/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct framing;

struct framing_ops {
    // Reads up to the end of the next piece of the body: *ret_size bytes (0: none) at *ret_data.
    // Returns the number of bytes consumed, which never exceeds the body. A malformed body sets
    // framing->reason.
    size_t (*read)(struct framing *framing, const char *text, size_t length, const char **ret_data,
                   size_t *ret_size);
    bool (*at_end)(const struct framing *framing);
};

struct framing {
    const struct framing_ops *ops;
    const char *reason; // why the body is malformed (static text), or NULL
    union {
        uint64_t left; // by length: bytes still to come
        struct chunks chunks;
    };
};

// `length` is what Content-Length says, 0 without one.
void framing_init(struct framing *framing, const struct http_head *head, uint64_t length);
