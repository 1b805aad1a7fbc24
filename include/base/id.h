// SPDX-License-Identifier: Apache-2.0
// Ids, tokens and ts: parses strictly what peers send, and makes new ones from the kernel's
// randomness.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_LENGTH_MAX = 20, ID_SIZE = ID_LENGTH_MAX + 1, TS_SIZE = 18, TOKEN_SIZE = 64 };

// Whether `text` is one of `prefixes` ("CGD") followed by 2 to 19 characters of A-Z and 0-9, and
// nothing else.
bool id_is_valid(const char *text, const char *prefixes);

// A new random id: `prefix` and 10 characters of A-Z0-9 (51 bits). `ret_id` has ID_SIZE bytes.
void id_make(char prefix, char *ret_id);

// A new random token `prefix`-… with 256 bits in URL-safe characters. `ret_token` has at least 64
// bytes.
void token_make(const char *prefix, char *ret_token);

// Fills `data` with the kernel's randomness; if there is none, ends the process rather than make
// weak ids.
void random_fill(void *data, size_t length);

// Parses `^\d{10}\.\d{6}$` of `length` bytes into microseconds. -ERROR_INVALID_TIMESTAMP for
// anything else.
NODISCARD int ts_parse(const char *text, size_t length, int64_t *ret_ts_us);

// Parses any moment, not only a message's ts: seconds since 1970 with any number of decimals, of
// which those beyond the sixth are dropped. Same errors.
NODISCARD int ts_parse_moment(const char *text, size_t length, int64_t *ret_ts_us);

// Prints microseconds as "1717200000.123456"; 0 as "0000000000.000000". `ret_text` has TS_SIZE
// bytes.
void ts_print(int64_t ts_us, char *ret_text);

// Parses a decimal integer of `length` bytes (optional '-'; no blanks, no '+', no leading zeros)
// within [min, max]. -ERROR_INVALID_ARGUMENTS for anything else.
NODISCARD int integer_parse(const char *text, size_t length, int64_t min, int64_t max,
                            int64_t *ret_number);
