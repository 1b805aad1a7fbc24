// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/buffer.h"

// Appends `text`, made fit for the inside of a JSON string of a log: tokens cut to their prefix,
// what is not UTF-8 and control characters (of C1 as well, which terminals obey) replaced or
// escaped.
void log_append_clean(struct buffer *out, const char *text, size_t length);
