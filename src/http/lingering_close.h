// SPDX-License-Identifier: Apache-2.0
// Lingering close: a last word to a peer that may still be sending.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct server;

// Writes `text` to `fd`, then reads and throws away at most `budget` bytes in at most 2 s, and
// closes. Owns `fd`.
void lingering_close_start(struct server *server, int fd, int64_t budget, const char *text,
                           size_t length);
