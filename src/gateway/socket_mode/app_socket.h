// SPDX-License-Identifier: Apache-2.0
// App sockets: connections of apps in Socket Mode.
#pragma once

struct connection;
struct gateway;
struct handshake;

void app_socket_accept(struct connection *c, const struct handshake *handshake);
// Renews the entries of apps in Redis and Postgres before they expire. Every second.
void app_sockets_refresh(struct gateway *gateway);
