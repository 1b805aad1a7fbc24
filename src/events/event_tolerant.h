// SPDX-License-Identifier: Apache-2.0
// The wire form of an event as another release may write it: in any order, with more fields, and
// without those of ours that an event can do without. It makes a tree of the header, so it is tried
// only where the form of event_encode() does not match.
#pragma once

#include "events/event.h"

// As event_decode().
NODISCARD int event_decode_tolerant(const char *data, size_t length, struct event **ret_event,
                                    char *ret_reason);
