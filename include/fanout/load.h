// SPDX-License-Identifier: Apache-2.0
// Reads back what an outbox row tells of, with the bodies and frames that its events need.
#pragma once

#include "events/event.h"
#include "store/session.h"

// A relay_load_fn: fills at most `max` events of row `outbox_id` and returns how many; 0 when the
// row is gone. -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_MEMORY, -ERROR_INTERNAL.
NODISCARD int event_load(struct session *session, const char *outbox_id, struct event **ret_events,
                         int max);
