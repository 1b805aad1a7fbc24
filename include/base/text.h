// SPDX-License-Identifier: Apache-2.0
// Checks of text from outside.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Whether the bytes are valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF) without
// NUL.
bool text_is_utf8(const char *text, size_t length);

// How many code points valid UTF-8 holds.
size_t text_code_points(const char *text, size_t length);

// The byte length of the first `code_points_max` code points of valid UTF-8.
size_t text_prefix_length(const char *text, size_t length, size_t code_points_max);

// Whether there is nothing but white space (Unicode White_Space of valid UTF-8), or nothing at all.
bool text_is_blank(const char *text, size_t length);
