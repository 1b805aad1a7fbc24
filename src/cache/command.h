// SPDX-License-Identifier: Apache-2.0
// Formats commands for the wire.
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

// The suffix of a library's function names: "_<version>" of "tidings_<version>", pointing into
// `library_name`; "" if there is none.
const char *command_library_suffix(const char *library_name);

bool command_is_function_call(const char *verb);

// Appends a command. In an FCALL, `suffix` is appended to the function's name. `lengths` may be
// NULL if the texts are NUL-terminated.
void command_append(struct buffer *out, const char *suffix, int count, const char *const *texts,
                    const size_t *lengths);
