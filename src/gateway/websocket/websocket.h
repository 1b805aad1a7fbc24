// SPDX-License-Identifier: Apache-2.0
// A client's WebSocket (RTM).
#pragma once

#include "base/cleanup.h"

struct connection;
struct handshake;

void websocket_accept(struct connection *c, const struct handshake *handshake);
// The steps that need no login. -ERROR_MEMORY.
NODISCARD int websocket_make(struct connection *c);
void websocket_hello(struct connection *c, const char *reply); // `reply`: the handshake's
