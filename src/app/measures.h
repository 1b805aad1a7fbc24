// SPDX-License-Identifier: Apache-2.0
// Measurements of Postgres and the outbox, for metrics.
#pragma once

#include "base/cleanup.h"
#include "chat/heat.h"
#include "store/session.h"

#include <stdint.h>

struct measures {
    struct heat *heat; // written here alone
    int64_t due_ms;    // slow measurements are taken less often
    // The oldest transaction held by a replication slot or standby, and when it was first seen:
    // Postgres does not report a time.
    char held[24];
    int64_t held_ms;
};

// Takes the measurements, unless they are not due yet because the previous ones took long. Errors
// of session_call().
NODISCARD int measures_take(struct measures *measures, struct session *session);
