// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC-SHA256, by OpenSSL. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_LENGTH = 32, DIGEST_HEX_SIZE = 2 * DIGEST_LENGTH + 1 };

// Writes the SHA-256 digest as NUL-terminated lower-case hex. `ret_hex` has DIGEST_HEX_SIZE bytes.
void digest_sha256_hex(const void *data, size_t length, char *ret_hex);

// Writes the HMAC-SHA256 of `data` under `key` as NUL-terminated lower-case hex. `ret_hex` has
// DIGEST_HEX_SIZE bytes.
void digest_hmac_hex(const char *key, const void *data, size_t length, char *ret_hex);

// Compares two secrets of the same length in constant time.
bool digest_equal(const void *one, const void *other, size_t length);
