// SPDX-License-Identifier: Apache-2.0
// Event streams (GET /events).
#pragma once

struct connection;
struct http_head;

// Answers a request for /events, or starts its login.
void sse_accept(struct connection *c, const struct http_head *request);
