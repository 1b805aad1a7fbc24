// SPDX-License-Identifier: Apache-2.0
// Names of emoji, as reactions have them.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { EMOJI_NAME_MAX = 100 }; // bytes, without a skin tone

// Whether a text is a name without a skin tone: 1 to EMOJI_NAME_MAX of a-z, 0-9 and _+'-.
bool emoji_name_is_plain(const char *text, size_t length);

// Whether a text is of the form of a name: a-z, 0-9 and _+'-, and perhaps ::skin-tone-2 to -6. The
// emoji need not exist.
bool emoji_name_is_valid(const char *text, size_t length);
