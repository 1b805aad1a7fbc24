// SPDX-License-Identifier: Apache-2.0
// What a database's tables are, compared with the migrations that this program contains.
#pragma once

#include "base/buffer.h"
#include "migration_internal.h"

struct session;

// How the tables were made.
enum tables_origin {
    TABLES_NONE,     // not yet
    TABLES_OF_0_1_0, // by release 0.1.0 or what came before it, which noted no digests
    TABLES_NOTED,    // each migration is noted with its digest
};

enum { MIGRATIONS_MAX = 999 };

// Makes columns of schema_migrations that release 0.1.0 did not have.
#define NOTES_COLUMNS_SQL                                                                          \
    "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS sha256 text,"                          \
    " ADD COLUMN IF NOT EXISTS release text NOT NULL DEFAULT '',"                                  \
    " ADD COLUMN IF NOT EXISTS before_runs boolean NOT NULL DEFAULT false"

struct tables {
    enum tables_origin origin;
    bool has_functions;         // of this version
    bool is_newer;              // of a release after this one, on which this one runs
    char release[RELEASE_SIZE]; // the youngest that is noted; "": none
    const struct migration *missing[MIGRATIONS_MAX]; // in order
    int missing_count;
};

// Reads what is there. -ERROR_REFUSED: it contradicts this program; `report` gets a line for each
// reason. Others as of session_call().
NODISCARD int tables_read(struct session *session, struct buffer *report,
                          struct tables *ret_tables);

// Compares tables without digests with those that release 0.1.0 makes, in a transaction that leaves
// nothing. -ERROR_REFUSED: they differ; `report` says where.
NODISCARD int tables_compare(struct session *session, struct buffer *report);

// Notes the digest of the migration that release 0.1.0 made such tables by, by
// migration_lock_retry().
NODISCARD int tables_take_over(struct session *session, const struct migrate_options *options);
