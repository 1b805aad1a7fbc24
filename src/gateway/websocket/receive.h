// SPDX-License-Identifier: Apache-2.0
// Turns the peer's bytes into messages.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct connection;
struct receiver;

// Takes a whole text message, which is valid only inside the call.
typedef void receive_fn(struct connection *c, const char *text, size_t length);

// The input state of any WebSocket. Zero-initialized.
struct socket {
    struct receiver *receiver; // NULL unless a message has partly arrived
    int64_t frames_due_us;     // rate limit: when the frames received so far are paid for
};

// Parses bytes from the connection's peer, and calls `fn` for each message while it is OPEN.
// -ERROR_INVALID_ARGUMENTS, -ERROR_MEMORY: further input must be ignored, after the peer's Close,
// a violation of the protocol or a limit, or without memory. The connection is ending then.
NODISCARD int receive(struct connection *c, struct socket *socket, receive_fn *fn, const void *data,
                      size_t length);
// Exempts the peer's last frame from the rate limit, since it answered one of ours.
void receive_free_of_cost(const struct connection *c, struct socket *socket);
void receive_done(struct socket *socket); // frees the input state
