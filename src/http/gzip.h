// SPDX-License-Identifier: Apache-2.0
// Compresses texts. Knows nothing of HTTP but the header Accept-Encoding.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct gzip;

// Whether a caller with this Accept-Encoding (NULL: none) takes gzip.
bool gzip_is_accepted(const char *accept_encoding);

struct gzip *gzip_new(void);       // for many texts, one at a time; NULL: no memory
void gzip_free(struct gzip *gzip); // takes NULL

// Puts a compressed text in the place of `text`. False: it is as it was, since there was no memory,
// or it became no shorter.
bool gzip_text(struct gzip *gzip, struct buffer *text);
