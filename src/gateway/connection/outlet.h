// SPDX-License-Identifier: Apache-2.0
// The queue of one connection: control bytes (PONG, CLOSE, the handshake), which are sent first,
// and references to packets. While both are empty it holds no memory.
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
    uint32_t first_sent; // bytes of the first packet that are sent
    size_t bytes;        // of packets, sent ones of the first included
};

void outlet_init(struct outlet *outlet);
void outlet_done(struct outlet *outlet);

// Adds a reference to `packet` at the end. -ERROR_MEMORY.
NODISCARD int outlet_push(struct outlet *outlet, struct packet *packet);

// Adds a control frame, or control bytes as they are. -ERROR_BUSY when too many wait.
NODISCARD int outlet_control(struct outlet *outlet, enum packet_opcode opcode, const void *payload,
                             size_t length);
NODISCARD int outlet_raw(struct outlet *outlet, const void *data, size_t length);

// Drops all packets but one that is partly sent.
void outlet_drop_backlog(struct outlet *outlet);

bool outlet_is_empty(const struct outlet *outlet);
// Bytes of packets that are still to be sent.
size_t outlet_unsent(const struct outlet *outlet);

// Sends everything in as few system calls as possible. 0: all sent; 1: the socket takes no more
// now; -ERROR_UNAVAILABLE: it is broken.
NODISCARD int outlet_flush(struct outlet *outlet, int fd);
