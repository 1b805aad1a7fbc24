// SPDX-License-Identifier: Apache-2.0
// The text of blocks, for what shows no blocks: old clients, history readers, notifications.
#pragma once

#include "base/buffer.h"

#include <jansson.h>

// Appends the text of `blocks`, in order, without buttons and input fields; at most `max_bytes`,
// whole code points. Nothing if they have none. Their depth is bounded by their parser.
void blocks_text_append(const json_t *blocks, size_t max_bytes, struct buffer *out);
