// SPDX-License-Identifier: Apache-2.0
// A numbered file of migrations/: its header, and how to apply it. The header is comment lines,
// "-- key: value":
//   release      the release that introduces it
//   before       yes or no: whether instances of the previous release run on a migrated database
//   locks        none; short: it takes locks that posts wait for, so each attempt has a time limit
//                and is repeated
//   takes        how long it takes, in words for operators
//   transaction  no: runs statement by statement, each of which must be repeatable (CREATE INDEX
//                CONCURRENTLY after DROP INDEX CONCURRENTLY IF EXISTS). Otherwise: a single
//                transaction.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/embedded.h"

#include <stdbool.h>
#include <stdint.h>

struct session;

enum { RELEASE_SIZE = 24, TAKES_SIZE = 100 };

struct migration {
    uint32_t tag;
    const struct embedded_file *file;
    int version; // from the file name
    char release[RELEASE_SIZE];
    char takes[TAKES_SIZE];
    bool before_runs;
    bool locks;
    bool in_transaction;
};

struct migrate_options;

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024 };

// Runs the contents of `script` by session_script() and empties it. Also -ERROR_MEMORY.
NODISCARD int migration_script_run(struct session *session, struct buffer *script);

// Retries work that needs locks. `try` returns -ERROR_BUSY after waiting for `lock_ms`, and is then
// repeated until options->wait_s has passed. Returns the last result of `try`.
typedef int lock_try_fn(const void *arg, struct session *session, int64_t lock_ms);
NODISCARD int migration_lock_retry(const struct migrate_options *options, const char *what,
                                   lock_try_fn *try, const void *arg, struct session *session);

// Parses the header. -ERROR_INVALID_ARGUMENTS (logged): incomplete.
NODISCARD int migration_parse(const struct embedded_file *file, struct migration *ret_migration);

// Applies the file and records it in schema_migrations, by migration_lock_retry(). -ERROR_BUSY:
// others held a lock all that time. Other errors as in session_script(). A failed transaction
// leaves nothing behind.
NODISCARD int migration_apply(const struct migration *migration, struct session *session,
                              const struct migrate_options *options);
