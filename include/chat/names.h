// SPDX-License-Identifier: Apache-2.0
// Finds "@name" in a text whose author asked for names to be linked. '.', '-' and '_' at its end do
// not belong to a name ("hello @ann."). What is between < and >, or follows a letter (as in a mail
// address), is no name.
#pragma once

#include "base/buffer.h"

#include <stddef.h>

// The next name at or after *offset, which is then moved behind that name; NULL when there is none.
const char *names_next(const char *text, size_t length, size_t *offset, size_t *ret_length);

// The id of the user of that name; NULL when there is none.
typedef const char *name_find_fn(const void *arg, const char *name, size_t length);

// Appends the text, with each name that `fn` knows replaced by "<@U…>", and "@here" and the like by
// "<!here>".
void names_link(const char *text, size_t length, name_find_fn *fn, const void *arg,
                struct buffer *out);
