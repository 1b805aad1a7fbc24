// SPDX-License-Identifier: Apache-2.0
// Late events: while those of other instances are stuck in the outbox or in the log, the gateway
// reads them from Postgres.
#pragma once

// SQL: whether the outbox has rows older than `interval`.
#define OUTBOX_LATE(interval)                                                                      \
    "EXISTS (SELECT FROM outbox_rows WHERE NOT done AND created < now() - interval '" interval "'" \
    ")"
