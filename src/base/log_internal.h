// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/buffer.h"

// Appends `text`, sanitised for a JSON string in the log: tokens are cut to their prefix; invalid
// UTF-8 and control characters (including C1, which terminals interpret) are replaced or escaped.
void log_append_clean(struct buffer *out, const char *text, size_t length);
