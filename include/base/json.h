// SPDX-License-Identifier: Apache-2.0
// Reading JSON that a peer sent.
#pragma once

#include "base/cleanup.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 64, JSON_DEPTH_ANY = INT32_MAX };

static const int64_t JSON_VALUES_ANY = INT64_MAX;

// What a parser has to do, at a fraction of its cost and before it, since it recurses.
struct json_size {
    int depth; // of brackets; an object or array at the top is level 1
    int64_t
        values; // strings, numbers, words, arrays and objects, at any depth; not names of members
};
struct json_size json_measure(const char *text, size_t length);

// Parses `length` bytes, nested at most `depth_max` deep and of at most `values_max` values. No
// duplicate keys, no NUL, nothing after the value. The caller owns the value. -ERROR_INVALID_JSON;
// -ERROR_REQUEST_TOO_LARGE: too many values.
NODISCARD int json_read(const char *text, size_t length, int depth_max, int64_t values_max,
                        json_t **ret_value);

static inline void json_unref(json_t **value)
{
    json_decref(*value);
}
#define CLEANUP_JSON CLEANUP(json_unref)
