// SPDX-License-Identifier: Apache-2.0
// A connection's output queue: control bytes (handshake, Ping, Pong, Close), which are sent first,
// and references to packets. Allocates nothing while it is empty.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "packet.h"

#include <stdbool.h>

enum { OUTLET_FEW = 4, OUTLET_CONTROL_MAX = 16384 };

struct outlet {
    struct buffer control;
    size_t control_sent;
    struct packet *few[OUTLET_FEW]; // the ring, while it is short
    struct packet **ring;
    uint32_t first;
    uint32_t count;
    uint32_t capacity;   // a power of two
    uint32_t first_sent; // bytes of the first packet already sent
    size_t bytes;        // of all queued packets, including first_sent
};

void outlet_init(struct outlet *outlet);
void outlet_done(struct outlet *outlet);

// Appends `packet`, and references it. -ERROR_MEMORY.
NODISCARD int outlet_push(struct outlet *outlet, struct packet *packet);

// Appends a control frame, or raw control bytes. -ERROR_BUSY: OUTLET_CONTROL_MAX is exceeded, or
// out of memory.
NODISCARD int outlet_control(struct outlet *outlet, enum packet_opcode opcode, const void *payload,
                             size_t length);
NODISCARD int outlet_raw(struct outlet *outlet, const void *data, size_t length);

// Drops all packets except one that is partly sent.
void outlet_drop_backlog(struct outlet *outlet);

bool outlet_is_empty(const struct outlet *outlet);
// Bytes of packets not sent yet.
size_t outlet_unsent(const struct outlet *outlet);

// Sends everything in as few system calls as possible. 0: all was sent; 1: the socket's buffer is
// full; -ERROR_UNAVAILABLE: the connection is broken.
NODISCARD int outlet_flush(struct outlet *outlet, int fd);
