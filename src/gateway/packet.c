// SPDX-License-Identifier: Apache-2.0
#include "packet.h"

#include <assert.h>
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

struct packet *packet_new(const char *text, size_t length)
{
    uint8_t header[PACKET_HEADER_MAX];
    size_t header_length = packet_header(PACKET_TEXT, length, header);
    if (length > UINT32_MAX - PACKET_HEADER_MAX)
        return NULL;
    struct packet *packet = malloc(sizeof *packet + header_length + length);
    if (!packet)
        return NULL;
    packet->references = 1;
    packet->length = (uint32_t)(header_length + length);
    memcpy(packet->data, header, header_length);
    memcpy(packet->data + header_length, text, length);
    return packet;
}

void packet_unref(struct packet *packet)
{
    if (!packet)
        return;
    assert(packet->references > 0);
    if (--packet->references == 0)
        free(packet);
}
