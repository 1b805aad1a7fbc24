// SPDX-License-Identifier: Apache-2.0
// Checks text received from outside. Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Whether the bytes are valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF) without
// NUL.
bool text_is_utf8(const char *text, size_t length);

// The number of code points in valid UTF-8.
size_t text_code_points(const char *text, size_t length);

// The length in bytes of the first `code_points_max` code points of valid UTF-8.
size_t text_prefix_length(const char *text, size_t length, size_t code_points_max);
