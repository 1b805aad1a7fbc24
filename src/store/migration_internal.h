// SPDX-License-Identifier: Apache-2.0
// One numbered file of migrations/: what its header says, and how it is applied. The header is
// comment lines, "-- key: value":
//   release      that brings it
//   before       yes: instances of the release before run on a database that has it; no
//   locks        none; short: locks that posts wait for, so it has a second at most, and is tried
//                again
//   takes        how long, in words for an operator
//   transaction  no: statement by statement, each of which may be repeated (CREATE INDEX
//                CONCURRENTLY after DROP INDEX CONCURRENTLY IF EXISTS). Otherwise all in one.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/embedded.h"

#include <stdbool.h>
#include <stdint.h>

struct session;

enum { RELEASE_SIZE = 24, TAKES_SIZE = 100 };

struct migration {
    const struct embedded_file *file;
    int version; // the number in its name
    char release[RELEASE_SIZE];
    char takes[TAKES_SIZE];
    bool before_runs;
    bool locks;
    bool in_transaction;
};

struct migrate_options;

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024 };

// session_script() of what was written to `script`, which is empty afterwards. -ERROR_MEMORY.
NODISCARD int migration_script_run(struct session *session, struct buffer *script);

// What needs locks that others may hold: tried again, as long as options->wait_s allows, when `try`
// answers -ERROR_BUSY, which it does after waiting for `lock_ms`. Returns what it answered last.
typedef int lock_try_fn(const void *arg, struct session *session, int64_t lock_ms);
NODISCARD int migration_lock_retry(const struct migrate_options *options, const char *what,
                                   lock_try_fn *try, const void *arg, struct session *session);

// Reads the header. -ERROR_INVALID_ARGUMENTS (logged): it is not whole.
NODISCARD int migration_parse(const struct embedded_file *file, struct migration *ret_migration);

// Applies the file and notes that in schema_migrations, by migration_lock_retry(). -ERROR_BUSY:
// others held a lock all that time; others as of session_script(). Whatever failed in a transaction
// left nothing behind.
NODISCARD int migration_apply(const struct migration *migration, struct session *session,
                              const struct migrate_options *options);
