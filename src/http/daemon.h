// SPDX-License-Identifier: Apache-2.0
// Decides when libmicrohttpd runs.
#pragma once

#include "base/cleanup.h"

struct server;

// Makes libmicrohttpd run at the end of this turn, or in another turn without waiting.
void daemon_run_soon(struct server *server);
// Watches the epoll descriptor of server->daemon.
NODISCARD int daemon_watch(struct server *server);
// Idle callback of the loop: runs libmicrohttpd if daemon_run_soon() asked for it. `arg` is the
// server.
void daemon_idle(void *arg);
