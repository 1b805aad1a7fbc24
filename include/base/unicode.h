// SPDX-License-Identifier: Apache-2.0
// What Unicode says of characters: their kinds, names that look the same, the ends of what a reader
// sees as one character. The only user of utf8proc. Any thread.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum unicode_kind {
    UNICODE_LETTER, // without case, or a small one
    UNICODE_CAPITAL,
    UNICODE_NUMBER,
    UNICODE_MARK,      // such as an accent; part of the letter before it
    UNICODE_JOINER,    // invisible between two letters of some scripts: ZWNJ, ZWJ
    UNICODE_INVISIBLE, // blanks, control and format characters, and others that show nothing
    UNICODE_OTHER      // punctuation, symbols; unassigned; bytes that are no UTF-8
};

// The kind of the character that `text` begins with, and its length, which is at least 1. `length`
// is not 0.
enum unicode_kind unicode_kind_of(const char *text, size_t length, size_t *ret_length);

// Whether valid UTF-8 is empty, or shows nothing.
bool unicode_is_blank(const char *text, size_t length);

// The length in bytes of the longest prefix of valid UTF-8 that has at most `code_points_max` code
// points and ends where a grapheme cluster does. A cluster longer than that is cut at a code point.
size_t unicode_prefix_length(const char *text, size_t length, size_t code_points_max);

// NFKC_Casefold: equal for texts that differ only in case, in how they are encoded, or in what is
// invisible. The caller frees it. NULL: out of memory, or no UTF-8.
NODISCARD char *unicode_fold(const char *text, size_t length);
