// SPDX-License-Identifier: Apache-2.0
// Connections of apps (Socket Mode).
#pragma once

struct connection;
struct gateway;
struct handshake;

void app_socket_accept(struct connection *c, const struct handshake *handshake);
void app_sockets_refresh(struct gateway *gateway); // tells Redis and Postgres of them, in good time
