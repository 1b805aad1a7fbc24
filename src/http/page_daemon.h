// SPDX-License-Identifier: Apache-2.0
// Serves pages and files by libmicrohttpd: one request of a connection, which is then closed.
#pragma once

#include "base/cleanup.h"

struct http_connection;
struct server;

NODISCARD int page_daemon_start(struct server *server);
// Idle callback of the loop: runs libmicrohttpd if there is something to do. `arg` is the server.
void page_daemon_idle(void *arg);
// Serves the connection's exchange. None of the request has been consumed.
void page_daemon_take(struct http_connection *connection);
// Ends all that is being served.
void page_daemon_stop(struct server *server);
