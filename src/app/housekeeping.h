// SPDX-License-Identifier: Apache-2.0
// Periodic work, on a thread of its own: creates and drops partitions of messages, deletes old keys
// and rows (upkeep.h), switches channels to the strategy for their size, reconciles member lists in
// Redis with Postgres. Every instance runs it; repeated work does no harm.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"
#include "chat/heat.h"

struct housekeeping;
struct storage;

// Keeps `heat`, which must outlive it, up to date. `storage`: of files; NULL: none.
NODISCARD int housekeeping_start(const struct settings *settings, struct heat *heat,
                                 const struct storage *storage,
                                 struct housekeeping **ret_housekeeping);
void housekeeping_stop(struct housekeeping *housekeeping); // joins and frees; NULL is allowed
