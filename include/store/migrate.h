// SPDX-License-Identifier: Apache-2.0
// Brings a database up to the state this program needs: tables, by the embedded migrations, and the
// functions and views of its version. All functions block and use a connection of their own.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdint.h>

struct migrate_options {
    const char *database_url;
    int64_t lock_ms; // lock timeout of one attempt, which is rolled back after twice that
    int64_t wait_s;  // how long to retry
};

// What must happen to the database before instances of this version can run.
enum migrate_need {
    MIGRATE_NOTHING,
    MIGRATE_ROLLING, // instances of the previous release keep running during and after it
    MIGRATE_STOPPED, // instances of the previous release must be stopped first
};

// Applies what is missing and appends lines for the operator to `report`. Concurrent runs wait for
// each other. On failure, or if killed, the database stays at its last complete step.
// -ERROR_REFUSED: this program may not change the database; the report says why. -ERROR_BUSY:
// others held a lock all the time. -ERROR_UNAVAILABLE, -ERROR_INTERNAL (logged).
NODISCARD int migrate_run(const struct migrate_options *options, struct buffer *report);

// Reports what migrate_run() would do, without changing anything. Same errors as migrate_run().
NODISCARD int migrate_check(const char *database_url, struct buffer *report,
                            enum migrate_need *ret_need);

// Whether instances of this version can run on the database. -ERROR_REFUSED: no; `report` says why.
// -ERROR_UNAVAILABLE, -ERROR_INTERNAL (logged): unknown.
NODISCARD int migrate_serves(const char *database_url, struct buffer *report);
