// SPDX-License-Identifier: Apache-2.0
// Base64, as RFC 4648 has it. Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

// Appends `data` in the URL-safe alphabet, without padding.
void base64_write_url(const void *data, size_t length, struct buffer *out);

// Reads either alphabet, with or without padding, into `ret_data` of `size` bytes. Returns how many
// there are. -ERROR_INVALID_ARGUMENTS: other characters, bits that are left over, or too long.
NODISCARD int base64_read(const char *text, size_t length, uint8_t *ret_data, size_t size);
