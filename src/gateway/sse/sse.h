// SPDX-License-Identifier: Apache-2.0
// Event streams (GET /events).
#pragma once

#include <stddef.h>

struct connection;

// The request head of /events is complete: answers it, or asks Postgres whose it is.
void sse_accept(struct connection *c, size_t head_length);
