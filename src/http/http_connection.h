// SPDX-License-Identifier: Apache-2.0
// A connection: its state, its deadline, and its descriptor.
#pragma once

#include "base/cleanup.h"
#include "server_internal.h"

// Creates a connection in the state FRESH. Takes over `fd`. NULL if out of memory; `fd` is then
// closed.
struct http_connection *connection_new(struct server *server, int fd);
// Closes the connection. Its exchange ends, now or when its handler has replied.
void connection_free(struct http_connection *connection);
// Frees the connection and passes its descriptor to the caller.
int connection_take_fd(struct http_connection *connection);
void connection_move(struct http_connection *connection, enum http_connection_state state);
// Consumes `length` bytes that MSG_PEEK has shown. False: the connection is broken.
NODISCARD bool connection_consume(const struct http_connection *connection, size_t length);
void connections_expire(struct server *server);
