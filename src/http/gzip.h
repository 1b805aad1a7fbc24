// SPDX-License-Identifier: Apache-2.0
// Compresses a text in pieces. Knows nothing of HTTP but the header Accept-Encoding.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct gzip;

// Whether a caller with this Accept-Encoding (NULL: none) takes gzip.
bool gzip_is_accepted(const char *accept_encoding);

struct gzip *gzip_new(void);       // may be used again and again; NULL: no memory
void gzip_free(struct gzip *gzip); // takes NULL

// Begins with what `text` holds, and leaves it empty.
void gzip_begin(struct gzip *gzip, struct buffer *text);
// Compresses at most `bytes` more. True when there is nothing more to do.
NODISCARD bool gzip_go_on(struct gzip *gzip, size_t bytes);
// Fills `text`, which is empty, with the outcome. False: with the text as it was, since there was
// no memory, or it became no shorter.
bool gzip_end(struct gzip *gzip, struct buffer *text);
