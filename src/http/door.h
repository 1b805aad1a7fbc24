// SPDX-License-Identifier: Apache-2.0
// The acceptor.
#pragma once

#include "base/cleanup.h"

struct server;

// Opens the door; the error is logged.
NODISCARD int door_open(struct server *server);
void door_close(struct server *server); // idempotent
// Lets in who has come already.
void door_accept_waiting(struct server *server);
// Tries again after a pause.
void door_resume(struct server *server);
