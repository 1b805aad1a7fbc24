// SPDX-License-Identifier: Apache-2.0
// Versioned tokens that a reply gives to clients and clients send back:
// "<letter><version>.<number>.<number>…".
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

// Parses a token. Version 1 has `count` numbers, each 0 or more, stored in ret_numbers; anything a
// later release appends (digits and dots) is ignored. A later version is recognised but not
// interpreted: ret_numbers is left unchanged. Returns the version. -ERROR_INVALID_ARGUMENTS if
// malformed.
NODISCARD int versioned_parse(const char *text, size_t length, char letter, int64_t *ret_numbers,
                              int count);
