// SPDX-License-Identifier: Apache-2.0
// Turns a ticket or token into an actor, and reads the actor's channels. The connection's ops
// decide whether to accept the actor, and what happens next.
#pragma once

struct connection;

// The connection is in CONNECTION_LOGIN. Calls its ops: admit, then open or refuse. `reply` is
// copied and passed on to these two; it is shorter than HANDSHAKE_REPLY_SIZE.
void login_ticket(struct connection *c, const char *ticket, const char *reply);
void login_token(struct connection *c, const char *token);
void login_forget(struct connection *c); // the connection ends; may be called again
