// SPDX-License-Identifier: Apache-2.0
// Brings a database up to the migrations that this binary holds.
#pragma once

#include "base/cleanup.h"

#include <stdint.h>

// Applies what is missing, in order, each in a transaction, under an advisory lock (two may run at
// once). ret_applied: how many were applied now. -ERROR_UNAVAILABLE, -ERROR_INTERNAL (logged).
NODISCARD int migrate_run(const char *database_url, int *ret_applied);

// The highest version this binary holds.
int migrate_version(void);

// The version that the database is at; 0 when it was never migrated. -ERROR_UNAVAILABLE,
// -ERROR_INTERNAL (logged).
NODISCARD int migrate_current(const char *database_url, int *ret_version);
