// SPDX-License-Identifier: Apache-2.0
// The state of a database's tables, compared with the program's migrations.
#pragma once

#include "base/buffer.h"
#include "migration_internal.h"

struct session;

// The origin of the tables.
enum tables_origin {
    TABLES_NONE,     // no tables yet
    TABLES_OF_0_1_0, // release 0.1.0 or earlier, which recorded no digests
    TABLES_NOTED,    // migrations recorded with their digests
};

enum { MIGRATIONS_MAX = 999 };

// Adds the columns of schema_migrations that release 0.1.0 lacks.
#define NOTES_COLUMNS_SQL                                                                          \
    "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS sha256 text,"                          \
    " ADD COLUMN IF NOT EXISTS release text NOT NULL DEFAULT '',"                                  \
    " ADD COLUMN IF NOT EXISTS before_runs boolean NOT NULL DEFAULT false"

struct tables {
    enum tables_origin origin;
    bool has_functions;                              // this version's functions exist
    bool is_newer;                                   // of the next release, on which this one runs
    char release[RELEASE_SIZE];                      // the latest recorded; "": none
    const struct migration *missing[MIGRATIONS_MAX]; // in order
    int missing_count;
};

// Reads the state. -ERROR_REFUSED: it contradicts this program; `report` gets a line per reason.
// Other errors as in session_call().
NODISCARD int tables_read(struct session *session, struct buffer *report,
                          struct tables *ret_tables);

// Compares tables without digests with those of release 0.1.0, in a transaction that is rolled
// back. -ERROR_REFUSED: they differ; `report` says where.
NODISCARD int tables_compare(struct session *session, struct buffer *report);

// Records the digest of release 0.1.0's migration for such tables, by migration_lock_retry().
NODISCARD int tables_take_over(struct session *session, const struct migrate_options *options);
