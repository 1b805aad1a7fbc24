// SPDX-License-Identifier: Apache-2.0
// Accepts connections.
#pragma once

#include "base/cleanup.h"

struct server;

// Starts listening. Errors are logged.
NODISCARD int acceptor_open(struct server *server);
void acceptor_close(struct server *server); // idempotent
// Accepts the connections already waiting.
void acceptor_accept_waiting(struct server *server);
// Resumes accepting after a pause.
void acceptor_resume(struct server *server);
