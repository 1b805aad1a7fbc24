// SPDX-License-Identifier: Apache-2.0
// Encodes frames as packets, which connections share.
#include "packet.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t packet_header(enum packet_opcode opcode, size_t payload_length, uint8_t *ret_header)
{
    ret_header[0] = (uint8_t)(0x80 | opcode);
    if (payload_length < 126) {
        ret_header[1] = (uint8_t)payload_length;
        return 2;
    }
    size_t bytes = payload_length <= UINT16_MAX ? 2 : 8;
    ret_header[1] = bytes == 2 ? 126 : 127;
    for (size_t i = 0; i < bytes; i++)
        ret_header[2 + i] = (uint8_t)((uint64_t)payload_length >> (8 * (bytes - 1 - i)));
    return 2 + bytes;
}

enum { PACKET_EXTRA_MAX = 512 };

#define EVENT_ID "id: "

// A packet of `head`, text and `tail`.
static struct packet *packet_make(const void *head, size_t head_length, const char *text,
                                  size_t length, const char *tail)
{
    size_t tail_length = strlen(tail);
    if (length > UINT32_MAX - PACKET_EXTRA_MAX)
        return NULL;
    size_t whole = head_length + length + tail_length;
    struct packet *packet = malloc(sizeof *packet + whole);
    if (!packet)
        return NULL;
    packet->references = 1;
    packet->length = (uint32_t)whole;
    packet->event_us = 0;
    memcpy(packet->data, head, head_length);
    memcpy(packet->data + head_length, text, length);
    memcpy(packet->data + head_length + length, tail, tail_length);
    return packet;
}

struct packet *packet_new(const char *text, size_t length)
{
    uint8_t header[PACKET_HEADER_MAX];
    size_t header_length = packet_header(PACKET_TEXT, length, header);
    return packet_make(header, header_length, text, length, "");
}

// Replaces line ends by blanks. In JSON they occur only between values, never inside strings.
static void lines_join(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n' || text[i] == '\r')
            text[i] = ' ';
}

struct packet *packet_new_event(const char *type, const char *text, size_t length, const char *id)
{
    char head[PACKET_EXTRA_MAX / 2];
    int head_length = snprintf(head, sizeof head, EVENT_ID "%s\nevent: %s\ndata: ", id, type);
    ASSERT(type[0] != '\0' && (size_t)head_length < sizeof head);
    struct packet *packet = packet_make(head, (size_t)head_length, text, length, "\n\n");
    if (packet)
        lines_join(packet->data + head_length, length);
    return packet;
}

static struct packet *packet_at(struct packet *packet, int64_t event_us)
{
    if (packet)
        packet->event_us = event_us;
    return packet;
}

struct packet *packets_frame(struct packets *packets)
{
    if (!packets->frame)
        packets->frame = packet_at(packet_new(packets->text, packets->length), packets->event_us);
    return packets->frame;
}

static bool event_has_id(const struct packet *event, const char *id)
{
    size_t length = strlen(id);
    const char *line = event->data + sizeof EVENT_ID - 1;
    return strncmp(line, id, length) == 0 && line[length] == '\n';
}

struct packet *packets_event(struct packets *packets, const char *id)
{
    if (packets->event && !event_has_id(packets->event, id))
        packet_unref(TAKE(packets->event));
    if (!packets->event)
        packets->event = packet_at(
            packet_new_event(packets->type, packets->text, packets->length, id), packets->event_us);
    return packets->event;
}

void packets_done(struct packets *packets)
{
    packet_unref(packets->frame);
    packet_unref(packets->event);
}

void packet_unref(struct packet *packet)
{
    if (!packet)
        return;
    ASSERT(packet->references > 0);
    if (--packet->references == 0)
        free(packet);
}
