// SPDX-License-Identifier: Apache-2.0
// Brings a database to what this program needs: tables, by the migrations that it contains, and the
// functions and views of its version. Everything blocks, and uses a connection of its own.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdint.h>

struct migrate_options {
    const char *database_url;
    int64_t
        lock_ms; // how long one try waits for a lock; it is undone unless it ends within twice that
    int64_t wait_s; // for how long it is tried
};

// What the database needs before instances of this version run.
enum migrate_need {
    MIGRATE_NOTHING,
    MIGRATE_ROLLING, // instances of the release before go on meanwhile and afterwards
    MIGRATE_STOPPED, // they must be stopped first
};

// Applies what is missing; `report` gets lines for the operator. Of several at once each waits for
// the one before it. What fails, or is killed, leaves the database as its last whole step did.
// -ERROR_REFUSED: the database is not one that this program may change; the report says why.
// -ERROR_BUSY: a lock was held by others all the time. -ERROR_UNAVAILABLE, -ERROR_INTERNAL
// (logged).
NODISCARD int migrate_run(const struct migrate_options *options, struct buffer *report);

// Reports what migrate_run() would do, and changes nothing. Errors as of migrate_run().
NODISCARD int migrate_check(const char *database_url, struct buffer *report,
                            enum migrate_need *ret_need);

// Whether instances of this version can run on the database. -ERROR_REFUSED: no, and `report` says
// why; -ERROR_UNAVAILABLE, -ERROR_INTERNAL (logged): it cannot be told.
NODISCARD int migrate_serves(const char *database_url, struct buffer *report);
