// SPDX-License-Identifier: Apache-2.0
// SHA-256, by OpenSSL.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_LENGTH = 32, DIGEST_HEX_SIZE = 2 * DIGEST_LENGTH + 1 };

// The digest in lower-case hex, NUL-terminated. `ret_hex` has DIGEST_HEX_SIZE bytes.
void digest_sha256_hex(const void *data, size_t length, char *ret_hex);

// The HMAC-SHA256 of `data` under `key` in lower-case hex. `ret_hex` has DIGEST_HEX_SIZE bytes.
void digest_hmac_hex(const char *key, const void *data, size_t length, char *ret_hex);

// Whether two secrets of the same length are equal. Takes the same time wherever they differ.
bool digest_equal(const void *one, const void *other, size_t length);
