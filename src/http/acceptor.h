// SPDX-License-Identifier: Apache-2.0
// The acceptor.
#pragma once

#include "base/cleanup.h"

struct server;

// Opens the acceptor; the error is logged.
NODISCARD int acceptor_open(struct server *server);
void acceptor_close(struct server *server); // idempotent
// Lets in who has come already.
void acceptor_accept_waiting(struct server *server);
// Tries again after a pause.
void acceptor_resume(struct server *server);
