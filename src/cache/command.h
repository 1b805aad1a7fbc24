// SPDX-License-Identifier: Apache-2.0
// Commands in the form in which they are sent.
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

// What the names of a library's functions end with: "_<version>" of "tidings_<version>", within
// `library_name`; "" when there is none.
const char *command_library_suffix(const char *library_name);

bool command_is_function_call(const char *verb);

// Appends a command; the function that an FCALL names gets `suffix` at its end. lengths may be NULL
// (texts are then NUL-terminated).
void command_append(struct buffer *out, const char *suffix, int count, const char *const *texts,
                    const size_t *lengths);
