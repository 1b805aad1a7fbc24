// SPDX-License-Identifier: Apache-2.0
// What both kinds of WebSocket, a client's and an app's, do alike. For their connection_ops.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct connection;

// 101, and what `hello` sends.
void socket_open(struct connection *c, const char *reply, void (*hello)(struct connection *c));
// Queues a frame that tells of nothing that happened: positions do not count it.
void socket_answer(struct connection *c, const char *text, size_t length);
void socket_ping(struct connection *c, int64_t now_ms);
void socket_end(struct connection *c); // Close
// 400, 503: answers the request so. 401, the ticket is no good: upgrades, tells that, and closes.
void socket_refuse(struct connection *c, int status, const char *reply);
