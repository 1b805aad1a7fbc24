// SPDX-License-Identifier: Apache-2.0
// What each provider is sent, as JSON (API.md, "Phones"). Any thread.
#pragma once

#include "notify/notify.h"

// What a provider takes at most, in bytes.
enum { PAYLOAD_MAX = 4096 };

// Appends the payload of a push. A text that is too long for `max` bytes is cut between two code
// points. -ERROR_TOO_LONG: it does not fit even without a text. -ERROR_MEMORY.
NODISCARD int payload_write(const struct notify_push *push, size_t max, struct buffer *out);
