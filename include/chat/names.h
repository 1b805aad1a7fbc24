// SPDX-License-Identifier: Apache-2.0
// Finds "@name" in a text, for authors who asked to have names linked. A trailing '.', '-' or '_'
// is not part of a name ("hello @ann."). Text between < and >, and an '@' after a letter (a mail
// address), are skipped.
#pragma once

#include "base/buffer.h"

#include <stddef.h>

// The next name at or after *offset, without its '@'; advances *offset past it. NULL: none left.
const char *names_next(const char *text, size_t length, size_t *offset, size_t *ret_length);

// Returns the id of the user with this name; NULL: unknown.
typedef const char *name_find_fn(const void *arg, const char *name, size_t length);

// Appends the text, replacing each name known to `fn` by "<@U…>", and "@here" and the like by
// "<!here>".
void names_link(const char *text, size_t length, name_find_fn *fn, const void *arg,
                struct buffer *out);
