// SPDX-License-Identifier: Apache-2.0
// Handles a client's messages: posts, pings, and what it asks for.
#pragma once

#include <stddef.h>

struct connection;

void inbound_message(struct connection *c, const char *text, size_t length);
void inbound_forget(struct connection *c); // the connection is gone: its calls' replies are dropped
