// SPDX-License-Identifier: Apache-2.0
// What others committed and nobody brings: while it waits in the outbox for longer than it should,
// or in the log, events come from Postgres.
#pragma once

// SQL: whether rows wait there for longer than `interval`.
#define OUTBOX_LATE(interval)                                                                      \
    "EXISTS (SELECT FROM outbox_rows WHERE NOT done AND created < now() - interval '" interval "'" \
    ")"
