// SPDX-License-Identifier: Apache-2.0
// Splits the text of a request's head in place.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text {
    const char *data;
    size_t length;
};

struct text text_of(const char *value);           // trimmed; NULL: empty
bool text_is(struct text text, const char *word); // ignores case
struct text text_trim(struct text text);
// Removes and returns the part of `rest` before `separator`; all of it if there is none.
struct text text_take(struct text *rest, const char *separator);
