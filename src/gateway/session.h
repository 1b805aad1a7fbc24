// SPDX-License-Identifier: Apache-2.0
// What every kind of connection does when it takes its place, and when it leaves.
#pragma once

#include "base/cleanup.h"

struct connection;
struct result;
struct statement;

extern const struct statement session_channels; // the user's channels, for session_enter()
// Takes the connection's place among its user's and in all its channels. -ERROR_MEMORY.
NODISCARD int session_enter(struct connection *c, const struct result *channels);
void session_leave(struct connection *c); // login, channels, user; may be called again
