// SPDX-License-Identifier: Apache-2.0
// Ids, tokens and ts: strict parsers for input from peers, and generators that use the kernel's
// random source.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_LENGTH_MAX = 20, ID_SIZE = ID_LENGTH_MAX + 1, TS_SIZE = 18, TOKEN_SIZE = 64 };
enum { ID_SECRET_IDS = 3, ID_SECRET_SIZE = ID_SECRET_IDS * ID_LENGTH_MAX + 1 };

// Whether `text` is one character of `prefixes` ("CGD") followed by 2 to 19 characters of A-Z and
// 0-9, and nothing else.
bool id_is_valid(const char *text, const char *prefixes);

// Generates a random id: `prefix` and 10 characters of A-Z0-9 (51 bits). `ret_id` has ID_SIZE
// bytes.
void id_make(char prefix, char *ret_id);

// Generates a secret for a URL: ID_SECRET_IDS such ids (153 bits). `ret_secret` has ID_SECRET_SIZE
// bytes.
void id_make_secret(char *ret_secret);

// Generates a random token: `prefix`, "-" and 256 random bits as letters and digits, the only
// characters that all Slack tools accept. `ret_token` has at least 64 bytes.
void token_make(const char *prefix, char *ret_token);

// Fills `data` with bytes from the kernel's random source. Ends the process if that fails: weak ids
// would be worse.
void random_fill(void *data, size_t length);

// Parses a ts, `^\d{10}\.\d{6}$` of `length` bytes, into microseconds. -ERROR_INVALID_TIMESTAMP if
// malformed.
NODISCARD int ts_parse(const char *text, size_t length, int64_t *ret_ts_us);

// Parses any point in time, not only a message's ts: seconds since 1970 with any number of
// decimals. Decimals after the sixth are dropped. Same errors.
NODISCARD int ts_parse_moment(const char *text, size_t length, int64_t *ret_ts_us);

// Formats microseconds as "1717200000.123456", and 0 as "0000000000.000000". `ret_text` has TS_SIZE
// bytes.
void ts_print(int64_t ts_us, char *ret_text);

// Parses a decimal integer of `length` bytes within [min, max]. '-' is allowed; blanks, '+' and
// leading zeros are not. -ERROR_INVALID_ARGUMENTS otherwise.
NODISCARD int integer_parse(const char *text, size_t length, int64_t min, int64_t max,
                            int64_t *ret_number);
