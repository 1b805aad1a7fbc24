// SPDX-License-Identifier: Apache-2.0
// Where a stream of events can be resumed: a moment of Postgres such that everything committed
// before it was sent. In text it is the id of events: "e1.<xid>.<heard xid>.<seconds>.<era>",
// opaque to clients, the same for all users, good on every instance. See
// docs/decisions/2026-11-21-event-stream-position.md.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum { POSITION_SIZE = 88 };

struct position {
    int64_t xid;       // transactions below it: their events of channels were sent
    int64_t heard_xid; // below it: also marks, joins and leaves were heard
    int64_t seconds;   // Postgres' clock then
    int64_t era;       // in which this is so: see store.h
};

void position_print(const struct position *position, char *ret_text); // POSITION_SIZE bytes
// What position_print() prints, perhaps with more numbers; a position that a later release prints
// in another version ("e2.…") is read as one too old to be resumed from. -ERROR_INVALID_ARGUMENTS.
NODISCARD int position_parse(const char *text, size_t length, struct position *ret_position);
