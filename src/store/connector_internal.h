// SPDX-License-Identifier: Apache-2.0
// How a connection comes about. It blocks, since a name server takes as long as it likes: a lane
// has it done by a thread.
#pragma once

#include "base/loop.h"

#include "postgres_internal.h"

// Opens a connection to where `keywords` say: to the first host of theirs that can be written to.
// Each has `keywords->connect_timeout_ms`, also one that takes the connection and then says
// nothing. Blocks, on any thread; gives up when `stop_fd` can be read. The result is owned;
// PQstatus() tells whether it is connected, and PQerrorMessage() what the last host said; NULL
// without memory.
PGconn *connector_connect(const struct postgres_keywords *keywords, int stop_fd);

// A thread that opens one connection for a loop.
struct connector;

// Gets what connector_connect() returned, on the loop's thread.
typedef void connector_fn(void *arg, PGconn *conn);

// Begins. `keywords` must outlive it. Freed by connector_free(), earliest in `fn`.
NODISCARD int connector_new(struct loop *loop, const struct postgres_keywords *keywords,
                            connector_fn *fn, void *arg, struct connector **ret_connector);

// Stops the thread and waits for it. A connection that was not handed over yet is closed. Takes
// NULL.
void connector_free(struct connector *connector);
