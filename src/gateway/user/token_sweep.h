// SPDX-License-Identifier: Apache-2.0
// Closes connections whose token is no longer valid: at once when a message says that the token,
// its user or its app changed; otherwise by checking all tokens in rounds.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;

NODISCARD int token_sweep_new(struct gateway *gateway); // starts the rounds
void token_sweep_free(struct gateway *gateway);         // may be called without token_sweep_new()
// A message of the topic of sessions.
void token_sweep_on_message(struct gateway *gateway, const char *data, size_t length);
// Messages may have been missed: checks all tokens soon.
void token_sweep_expedite(struct gateway *gateway);
// A connection was opened.
void token_sweep_on_open(struct connection *c);
// Ends the connection if its token has expired. Every second.
void token_sweep_tick(struct connection *c, int64_t now_ms);
