// SPDX-License-Identifier: Apache-2.0
// Reading JSON that a peer sent.
#pragma once

#include "base/cleanup.h"

#include <jansson.h>
#include <stddef.h>

enum { JSON_DEPTH_MAX = 64 };

// Parses `length` bytes, nested at most `depth_max` deep (an object or array at the top is level
// 1). No duplicate keys, no NUL, nothing after the value. The caller owns the value.
// -ERROR_INVALID_JSON.
NODISCARD int json_read(const char *text, size_t length, int depth_max, json_t **ret_value);

static inline void json_unref(json_t **value)
{
    json_decref(*value);
}
#define CLEANUP_JSON CLEANUP(json_unref)
