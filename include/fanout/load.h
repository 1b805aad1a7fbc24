// SPDX-License-Identifier: Apache-2.0
// Reads an outbox row's events back from Postgres, with their messages and frames.
#pragma once

#include "events/event.h"
#include "store/session.h"

// A relay_load_fn. -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_MEMORY, -ERROR_INTERNAL.
NODISCARD int load_event(struct session *session, const char *outbox_id,
                         struct event ***ret_events);
