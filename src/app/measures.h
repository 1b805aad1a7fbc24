// SPDX-License-Identifier: Apache-2.0
// What Postgres tells of itself and of the outbox, for metrics.
#pragma once

#include "base/cleanup.h"
#include "store/session.h"

#include <stdint.h>

struct measures {
    int64_t due_ms; // what took long is not measured again soon
    // The oldest transaction that a replication slot or standby holds on to, and since when it was
    // this one: Postgres tells of no time.
    char held[24];
    int64_t held_ms;
};

// Measures, unless the last time took so long that it is not due yet. Errors of session_call().
NODISCARD int measures_take(struct measures *measures, struct session *session);
