// SPDX-License-Identifier: Apache-2.0
// Lingering close: delivers a last reply to a peer that may still be sending.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct server;

// Writes `text` to `fd`, reads and discards at most `budget` bytes for at most 2 s, and closes.
// Takes over `fd`.
void lingering_close_start(struct server *server, int fd, int64_t budget, const char *text,
                           size_t length);
