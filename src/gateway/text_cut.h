// SPDX-License-Identifier: Apache-2.0
// Cutting up the head of a request where it lies.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text {
    const char *data;
    size_t length;
};

struct text text_of(const char *value);           // trimmed; NULL: empty
bool text_is(struct text text, const char *word); // in any case of letters
struct text text_trim(struct text text);
// Takes what stands before `separator` off the beginning of `rest`; all of it when there is none.
struct text text_take(struct text *rest, const char *separator);
