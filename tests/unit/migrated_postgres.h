// SPDX-License-Identifier: Apache-2.0
// The private Postgres, with the tables and functions of this version.
#pragma once

#include "private_postgres.h"
#include "store/migrate.h"

#include <stdio.h>

// 0, or an error; what went wrong is printed.
static int postgres_migrate(void)
{
    const struct migrate_options options = {
        .database_url = postgres.url, .lock_ms = 500, .wait_s = 10};
    CLEANUP(buffer_done) struct buffer report;
    buffer_init(&report, 65536);
    int r = migrate_run(&options, &report);
    if (r < 0)
        fprintf(stderr, "migrate: %.*s\n", (int)report.length, report.data);
    return r;
}
