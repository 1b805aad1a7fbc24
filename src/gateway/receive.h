// SPDX-License-Identifier: Apache-2.0
// Turns the client's bytes into messages.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>

struct connection;
struct receiver;

// Takes bytes from the client. -ERROR_INVALID_ARGUMENTS when no more are to be read: after its
// Close, or a breach of the protocol.
NODISCARD int receive(struct connection *c, const void *data, size_t length);
void receiver_free(struct receiver *receiver); // takes NULL
// The client's last frame answered one of ours: it does not count toward its limit of frames.
void receive_free_of_cost(struct connection *c);
