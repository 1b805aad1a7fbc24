// SPDX-License-Identifier: Apache-2.0
// What every kind of connection does when it takes its place, and when it leaves.
#pragma once

#include "base/cleanup.h"

struct connection;
struct params;
struct result;
struct statement;

// Takes the connection's place among those of its user. -ERROR_MEMORY.
NODISCARD int session_enter_user(struct connection *c);
// Reads the user's channels for session_enter(), without parameters behind the user's id.
const struct statement *session_channels(struct connection *c, struct params *params);
// The same, and in all its channels.
NODISCARD int session_enter(struct connection *c, const struct result *channels);
void session_leave(struct connection *c); // login, channels, user; may be called again
