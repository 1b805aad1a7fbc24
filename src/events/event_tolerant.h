// SPDX-License-Identifier: Apache-2.0
// Decodes events as another release may write them: fields in any order, with more fields, and
// without optional ones. Parses the header into a tree, so it is used only if the fast path fails.
#pragma once

#include "events/event.h"

// Same contract as event_decode().
NODISCARD int event_decode_tolerant(const char *data, size_t length, struct event **ret_event,
                                    char *ret_reason);
