// SPDX-License-Identifier: Apache-2.0
// Opens connections to Postgres. This blocks, as name resolution may take any time, so a lane
// delegates it to a thread.
#pragma once

#include "base/loop.h"

#include "postgres_internal.h"

// Connects to the first host in `keywords` that accepts writes. Each host has
// `keywords->connect_timeout_ms`, even one that accepts the connection and then stays silent.
// Blocks; any thread; gives up when `stop_fd` becomes readable. The caller owns the connection:
// PQstatus() says whether it is connected, PQerrorMessage() holds the last host's error. NULL if
// out of memory.
PGconn *connector_connect(const struct postgres_keywords *keywords, int stop_fd);

// A thread that opens one connection for a loop.
struct connector;

// Receives the connection from connector_connect(), on the loop's thread.
typedef void connector_fn(void *arg, PGconn *conn);

// Starts the thread. `keywords` must outlive the connector. Free it with connector_free(), at the
// earliest in `fn`.
NODISCARD int connector_new(struct loop *loop, const struct postgres_keywords *keywords,
                            connector_fn *fn, void *arg, struct connector **ret_connector);

// Stops and joins the thread. Closes a connection that was not handed over. Accepts NULL.
void connector_free(struct connector *connector);
