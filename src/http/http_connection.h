// SPDX-License-Identifier: Apache-2.0
// A connection that is at the acceptor, in libmicrohttpd's hands, or lingering: its state and
// deadline.
#pragma once

#include "base/cleanup.h"
#include "server_internal.h"

// A connection on `fd` in the state FRESH. Owns `fd`. NULL (and closed) without memory.
struct http_connection *connection_new(struct server *server, int fd);
// Forgets the connection; closes its descriptor unless libmicrohttpd has it.
void connection_free(struct http_connection *connection);
// The same, but the descriptor is now the caller's.
int connection_take_fd(struct http_connection *connection);
void connection_move(struct http_connection *connection, enum http_connection_state state);
// Hands it to libmicrohttpd, which may refuse: the connection is gone then.
void connection_add_to_daemon(struct http_connection *connection);
// As mhd_descriptor_take(): the connection ends.
NODISCARD int connection_detach(struct http_connection *connection, int *ret_fd);
// libmicrohttpd has lost the descriptor, and is to find that out soon.
void connection_leaves_daemon(struct http_connection *connection);
void connections_expire(struct server *server);
// Ends those whose peer has said with its request that no other will come. To be called at each
// tick.
void connections_end_half_closed(struct server *server);
void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode code);
struct http_connection *connection_of(struct MHD_Connection *mhd);
