// SPDX-License-Identifier: Apache-2.0
// Lingering close: lets the last reply reach a peer that may still be sending.
#pragma once

#include <stdint.h>

struct http_connection;

// Ends the output of the connection, whose exchange is over. Reads and discards at most `budget`
// bytes for at most 2 s, then frees it.
void lingering_close_start(struct http_connection *connection, int64_t budget);
