// SPDX-License-Identifier: Apache-2.0
// Compresses text. Of HTTP, it knows only the header Accept-Encoding.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct gzip;

// Whether a client with this Accept-Encoding (NULL: none) accepts gzip.
bool gzip_is_accepted(const char *accept_encoding);

struct gzip *gzip_new(void);       // for many texts, one at a time; NULL if out of memory
void gzip_free(struct gzip *gzip); // accepts NULL

// Replaces `text` by its compressed form. False, leaving it unchanged: out of memory, or not
// shorter.
bool gzip_text(struct gzip *gzip, struct buffer *text);
