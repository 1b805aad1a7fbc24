// SPDX-License-Identifier: Apache-2.0
// The connection_ops common to both kinds of WebSocket: clients' sockets and app sockets.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct connection;

// Sends `reply` (101 Switching Protocols), then calls `hello`.
void socket_open(struct connection *c, const char *reply, void (*hello)(struct connection *c));
// Queues a frame that reports no event: positions do not count it.
void socket_answer(struct connection *c, const char *text, size_t length);
void socket_ping(struct connection *c, int64_t now_ms);
void socket_end(struct connection *c); // sends Close
// 400, 503: answers the request with this status. 401, an invalid ticket: upgrades by `reply`,
// sends an error frame, and closes.
void socket_refuse(struct connection *c, int status, const char *reply);
