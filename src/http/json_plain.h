// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "request_arguments.h"

// Adds the members of a JSON object when all are plain strings (text[length] must be a NUL), in
// place: `text` must outlive the arguments. 1: done; 0: not such an object, the text is as it was.
NODISCARD int json_plain_add(struct arguments *arguments, char *text, size_t length);
