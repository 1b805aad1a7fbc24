// SPDX-License-Identifier: Apache-2.0
// An encoded frame (for a WebSocket its header and payload, for an event stream its lines):
// immutable, and shared by all connections that receive it. The reference count has no lock: a
// packet stays on its gateway's loop.
#pragma once

#include "base/check.h"

#include <stddef.h>
#include <stdint.h>

enum packet_opcode { PACKET_TEXT = 0x1, PACKET_CLOSE = 0x8, PACKET_PING = 0x9, PACKET_PONG = 0xa };

enum { PACKET_HEADER_MAX = 10 };

struct packet {
    uint32_t references;
    uint32_t length;  // of data
    int64_t event_us; // when its event happened, for the metric of delivery times; 0: not measured
    char data[];
};

// Writes the header of an unmasked, final frame; returns its length. `ret_header` has
// PACKET_HEADER_MAX bytes.
size_t packet_header(enum packet_opcode opcode, size_t payload_length, uint8_t *ret_header);

// A text frame with one reference; NULL: out of memory.
struct packet *packet_new(const char *text, size_t length);

// An event of an event stream with one reference. `id` is the position after it. NULL: out of
// memory.
struct packet *packet_new_event(const char *type, const char *text, size_t length, const char *id);

static inline struct packet *packet_ref(struct packet *packet)
{
    ASSERT(packet->references > 0);
    packet->references++;
    return packet;
}

void packet_unref(struct packet *packet); // takes NULL

// A frame in the encodings that connections need, each made on first use. Of events only the last
// one is kept: most successive connections have the same id.
struct packets {
    const char *type; // of the event; an answer on a WebSocket, which is no event, has none: ""
    const char *text;
    size_t length;
    int64_t event_us; // of the packets
    struct packet *frame;
    struct packet *event;
};

// `type` and `text` must outlive the packets.
static inline struct packets packets_of(const char *type, const char *text, size_t length)
{
    return (struct packets){.type = type, .text = text, .length = length};
}

// Borrowed; NULL: out of memory.
struct packet *packets_frame(struct packets *packets);
struct packet *packets_event(struct packets *packets, const char *id);
void packets_done(struct packets *packets);
