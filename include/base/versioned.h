// SPDX-License-Identifier: Apache-2.0
// What clients keep of an answer and give back: "<letter><version>.<number>.<number>…".
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

// Reads such a text. Version 1 has `count` numbers, 0 or more each, in ret_numbers; what a later
// release appends to them (digits and dots) is ignored. Of a later version nothing more is known
// than that it is one: ret_numbers stays as it was. Returns the version; -ERROR_INVALID_ARGUMENTS
// for anything else.
NODISCARD int versioned_parse(const char *text, size_t length, char letter, int64_t *ret_numbers,
                              int count);
