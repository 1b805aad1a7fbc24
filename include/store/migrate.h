// SPDX-License-Identifier: Apache-2.0
// Applies the migrations that this binary contains to a database.
#pragma once

#include "base/cleanup.h"

#include <stdint.h>

// Applies the missing migrations, in order, each in a transaction. Several processes may do so at
// once: an advisory lock lets one at a time. ret_applied: how many were applied by this call.
// -ERROR_UNAVAILABLE, -ERROR_INTERNAL (logged).
NODISCARD int migrate_run(const char *database_url, int *ret_applied);

// The version of this binary's last migration.
int migrate_version(void);

// The database's version; 0 if it was never migrated. -ERROR_UNAVAILABLE,
// -ERROR_INTERNAL (logged).
NODISCARD int migrate_current(const char *database_url, int *ret_version);
