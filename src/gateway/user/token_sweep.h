// SPDX-License-Identifier: Apache-2.0
// Closes connections whose token is no longer valid: when told that it, its user or its app
// changed, or, for what was not heard, by asking for all tokens now and then.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;

NODISCARD int token_sweep_new(struct gateway *gateway); // checks from now on
void token_sweep_free(struct gateway *gateway);         // does nothing if there are none
// A message of the sessions' topic.
void token_sweep_on_message(struct gateway *gateway, const char *data, size_t length);
// Something may not have been heard: all tokens are checked soon.
void token_sweep_hurry(struct gateway *gateway);
// The connection was just opened.
void token_sweep_on_open(struct connection *c);
// Ends the connection if its token has expired; every second.
void token_sweep_tick(struct connection *c, int64_t now_ms);
