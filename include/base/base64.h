// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648). Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

// Appends `data`, encoded in the URL-safe alphabet without padding.
void base64_write_url(const void *data, size_t length, struct buffer *out);

// Decodes either alphabet, with or without padding, into `ret_data` of `size` bytes. Returns the
// number of bytes decoded. -ERROR_INVALID_ARGUMENTS: invalid characters or padding, non-zero
// trailing bits, or more than `size` bytes.
NODISCARD int base64_read(const char *text, size_t length, uint8_t *ret_data, size_t size);
