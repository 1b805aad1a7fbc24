// SPDX-License-Identifier: Apache-2.0
// The JSON payload for each provider (API.md, "Phones"). Any thread.
#pragma once

#include "notify/notify.h"

// Providers' maximum, in bytes.
enum { PAYLOAD_MAX = 4096 };

// Appends the payload of a push. A text too long for `max` bytes is cut between two code points.
// -ERROR_TOO_LONG: too long even without text. -ERROR_MEMORY.
NODISCARD int payload_write(const struct notify_push *push, size_t max, struct buffer *out);
