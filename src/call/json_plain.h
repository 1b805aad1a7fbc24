// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "call/request_arguments.h"

// Adds the members of a JSON object if all are plain strings (text[length] must be a NUL). In
// place: `text` must outlive the arguments. 1: added; 0: not such an object, `text` is unchanged.
NODISCARD int json_plain_add(struct arguments *arguments, char *text, size_t length);
