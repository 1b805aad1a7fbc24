// SPDX-License-Identifier: Apache-2.0
// Turns a ticket or token into an actor and its channels, and opens the connection.
#pragma once

struct connection;

void ticket_use(struct connection *c, const char *ticket, const char *reply);
void ticket_use_token(struct connection *c, const char *token);
void ticket_forget(struct connection *c); // its connection is gone
