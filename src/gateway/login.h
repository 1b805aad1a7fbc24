// SPDX-License-Identifier: Apache-2.0
// Turns a ticket or token into an actor, and reads the actor's channels. Whether that is what the
// connection wants, and what follows, is up to its ops.
#pragma once

struct connection;

// The connection is in CONNECTION_LOGIN. Answers through its ops: admit and open, or refuse, which
// gets `reply`, too (less than HANDSHAKE_REPLY_SIZE).
void login_ticket(struct connection *c, const char *ticket, const char *reply);
void login_token(struct connection *c, const char *token);
void login_forget(struct connection *c); // its connection is gone; may be called again
