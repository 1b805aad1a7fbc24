// SPDX-License-Identifier: Apache-2.0
// Turns a ticket or token into an actor, and reads the actor's channels. The connection's ops
// decide whether to accept the actor, and what happens next.
#pragma once

#include "base/cleanup.h"

#include <stdint.h>

struct connection;
struct gateway;
struct result;

// The connection is in CONNECTION_LOGIN. Calls its ops: admit, then open or refuse. `reply` is
// copied and passed on to these two; it is shorter than HANDSHAKE_REPLY_SIZE.
void login_ticket(struct connection *c, const char *ticket, const char *reply);
void login_token(struct connection *c, const char *token);

// Looks up a token, or logs the bearer of a JWT in, for an open connection that is to go on with
// it. r: 0 with a row for login_renewed(), -ERROR_INVALID_TOKEN, or of the store. `fn` is called on
// a later turn or inside login_renew(); not if that fails: -ERROR_MEMORY.
typedef void login_renewal_fn(void *arg, int r, const struct result *result);
NODISCARD int login_renew(struct gateway *gateway, const char *token, login_renewal_fn *fn,
                          void *arg);

// The connection goes on with the token that was found, asked for at `asked_ms`.
// -ERROR_INVALID_TOKEN: it is another user's, or lacks a scope.
NODISCARD int login_renewed(struct connection *c, int64_t asked_ms, const struct result *result);
void login_forget(struct connection *c); // the connection ends; may be called again
