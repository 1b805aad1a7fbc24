// SPDX-License-Identifier: Apache-2.0
// "@name" in a text whose author asked for names to be linked. A name ends before its last letter
// or digit is followed by '.', '-' or '_' alone ("hello @ann."); what stands between < and > and
// what follows a letter (a mail address) is none.
#pragma once

#include "base/buffer.h"

#include <stddef.h>

// The next name at or after *offset, which moves behind it; NULL when there is none.
const char *names_next(const char *text, size_t length, size_t *offset, size_t *ret_length);

// The id of the user of that name; NULL when there is none.
typedef const char *name_find_fn(const void *arg, const char *name, size_t length);

// Appends the text with "<@U…>" for each name that `fn` knows, and "<!here>" and its like.
void names_link(const char *text, size_t length, name_find_fn *fn, const void *arg,
                struct buffer *out);
