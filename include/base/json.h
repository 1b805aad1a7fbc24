// SPDX-License-Identifier: Apache-2.0
// Parses JSON received from peers.
#pragma once

#include "base/cleanup.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 64, JSON_DEPTH_ANY = INT32_MAX };

static const int64_t JSON_VALUES_ANY = INT64_MAX;

// The size of a JSON text, measured before it is parsed. Measuring costs a fraction of parsing and,
// unlike the parser, does not recurse.
struct json_size {
    int depth;      // bracket nesting; a top-level object or array has depth 1
    int64_t values; // strings, numbers, literals, arrays and objects, at any depth; not keys
};
struct json_size json_measure(const char *text, size_t length);

// Parses `length` bytes of JSON with at most `depth_max` nesting levels and `values_max` values.
// Rejects duplicate keys, NUL and trailing text. The caller owns the value. -ERROR_INVALID_JSON;
// -ERROR_REQUEST_TOO_LARGE: too many values.
NODISCARD int json_read(const char *text, size_t length, int depth_max, int64_t values_max,
                        json_t **ret_value);

static inline void json_unref(json_t **value)
{
    json_decref(*value);
}
#define CLEANUP_JSON CLEANUP(json_unref)
