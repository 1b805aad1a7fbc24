// SPDX-License-Identifier: Apache-2.0
// A connection at the acceptor, in libmicrohttpd, or in lingering close: its state and deadline.
#pragma once

#include "base/cleanup.h"
#include "server_internal.h"

// Creates a connection in the state FRESH. Takes over `fd`. NULL if out of memory; `fd` is then
// closed.
struct http_connection *connection_new(struct server *server, int fd);
// Frees the connection. Closes its descriptor unless libmicrohttpd has it.
void connection_free(struct http_connection *connection);
// Frees the connection and passes its descriptor to the caller.
int connection_take_fd(struct http_connection *connection);
void connection_move(struct http_connection *connection, enum http_connection_state state);
// Passes the connection to libmicrohttpd. If that refuses, the connection is gone.
void connection_add_to_daemon(struct http_connection *connection);
// Like mhd_descriptor_take(); the connection then ends.
NODISCARD int connection_detach(struct http_connection *connection, int *ret_fd);
// Called when libmicrohttpd has lost the descriptor: makes it notice soon.
void connection_leaves_daemon(struct http_connection *connection);
void connections_expire(struct server *server);
// Ends idle connections whose peer half-closed along with its last request. Call at each tick.
void connections_end_half_closed(struct server *server);
void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode code);
struct http_connection *connection_of(struct MHD_Connection *mhd);
