// SPDX-License-Identifier: Apache-2.0
// When libmicrohttpd runs.
#pragma once

#include "base/cleanup.h"

struct server;

// Sees to it that libmicrohttpd runs at the end of this turn, or at once in another.
void daemon_run_soon(struct server *server);
// Watches the descriptors of server->daemon.
NODISCARD int daemon_watch(struct server *server);
// An idle callback of the loop: runs what daemon_run_soon() asked for. `arg` is the server.
void daemon_idle(void *arg);
