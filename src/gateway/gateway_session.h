// SPDX-License-Identifier: Apache-2.0
// Adds a connection to its user and channels, and removes it. Common to all kinds of connection.
#pragma once

#include "base/cleanup.h"

struct connection;
struct params;
struct result;
struct statement;

// Adds the connection to its user's connections. -ERROR_MEMORY.
NODISCARD int session_enter_user(struct connection *c);
// The statement that reads the user's channels for session_enter(); adds no parameters.
const struct statement *session_channels(struct connection *c, struct params *params);
// Also subscribes the connection to all its channels. -ERROR_MEMORY.
NODISCARD int session_enter(struct connection *c, const struct result *channels);
void session_leave(struct connection *c); // login, channels, user; may be called again
