// SPDX-License-Identifier: Apache-2.0
// Turns the peer's bytes into messages.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct connection;
struct receiver;

// A whole text message; it is gone when the function returns.
typedef void receive_fn(struct connection *c, const char *text, size_t length);

// What every WebSocket keeps of what it reads. Zeroed at first.
struct socket {
    struct receiver *receiver; // NULL unless a message has partly arrived
    int64_t frames_due_us;     // for the limit of frames: when those sent so far are paid for
};

// Takes bytes of the connection, whose socket this is, and calls `fn` for each message while it is
// OPEN. -ERROR_INVALID_ARGUMENTS when no more are to be read: after the peer's Close, or a breach
// of the protocol.
NODISCARD int receive(struct connection *c, struct socket *socket, receive_fn *fn, const void *data,
                      size_t length);
// The peer's last frame answered one of ours: it does not count toward its limit of frames.
void receive_free_of_cost(const struct connection *c, struct socket *socket);
void receive_done(struct socket *socket); // frees what it keeps
