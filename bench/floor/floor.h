// SPDX-License-Identifier: Apache-2.0
// The subcommands of tidings-floor. Each prints "ready" once it listens, and serves until SIGTERM.
#ifndef TIDINGS_FLOOR_FLOOR_H
#define TIDINGS_FLOOR_FLOOR_H

#include "../common/tool.h"

#include <signal.h>

// Set by SIGTERM and SIGINT.
extern volatile sig_atomic_t floor_stopped;

// Prints "ready".
void floor_say_ready(void);

// HTTP posts, stored: libmicrohttpd, jansson and libpq on one thread, and nothing else; with
// --redis also heads of channels, and a count of each post in Redis; with --data also marks, and
// frames to members' sockets.
void floor_posts(const struct tool_args *args);

// HTTP reads, one prepared select each.
void floor_reads(const struct tool_args *args);

// A send loop of ready-made WebSocket frames to all that connect.
void floor_sockets(const struct tool_args *args);

#endif
