// SPDX-License-Identifier: Apache-2.0
// What must be done now and then: partitions of messages made and dropped, old keys and rows
// deleted (upkeep.h), channels moved to the strategy that fits their size, members in Redis
// compared with Postgres. A thread of its own; every instance may do it, it does no harm twice.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"

struct housekeeping;

NODISCARD int housekeeping_start(const struct settings *settings,
                                 struct housekeeping **ret_housekeeping);
void housekeeping_stop(struct housekeeping *housekeeping); // joins and frees; takes NULL
