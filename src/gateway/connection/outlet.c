// SPDX-License-Identifier: Apache-2.0
// A connection's output queue: a ring of packets, and control bytes.
#include "outlet.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { IOV_COUNT = 64 };

void outlet_init(struct outlet *outlet)
{
    *outlet = (struct outlet){.capacity = OUTLET_FEW};
    outlet->ring = outlet->few;
    buffer_init(&outlet->control, OUTLET_CONTROL_MAX);
}

static struct packet **outlet_at(struct outlet *outlet, uint32_t index)
{
    return &outlet->ring[(outlet->first + index) & (outlet->capacity - 1)];
}

static void outlet_shrink(struct outlet *outlet)
{
    if (outlet->ring != outlet->few)
        free(outlet->ring);
    outlet->ring = outlet->few;
    outlet->capacity = OUTLET_FEW;
    outlet->first = 0;
}

static void outlet_pop(struct outlet *outlet)
{
    struct packet *packet = *outlet_at(outlet, 0);
    ASSERT(outlet->count > 0 && outlet->bytes >= packet->length);
    outlet->bytes -= packet->length;
    outlet->first = (outlet->first + 1) & (outlet->capacity - 1);
    outlet->count--;
    outlet->first_sent = 0;
    packet_unref(packet);
    if (outlet->count == 0)
        outlet_shrink(outlet);
}

void outlet_done(struct outlet *outlet)
{
    while (outlet->count > 0)
        outlet_pop(outlet);
    buffer_done(&outlet->control);
}

static int outlet_grow(struct outlet *outlet)
{
    struct packet **ring = calloc(2 * (size_t)outlet->capacity, sizeof *ring);
    if (!ring)
        return -ERROR_MEMORY;
    for (uint32_t i = 0; i < outlet->count; i++)
        ring[i] = *outlet_at(outlet, i);
    uint32_t capacity = 2 * outlet->capacity;
    outlet_shrink(outlet);
    outlet->ring = ring;
    outlet->capacity = capacity;
    return 0;
}

int outlet_push(struct outlet *outlet, struct packet *packet)
{
    if (outlet->count == outlet->capacity) {
        int r = outlet_grow(outlet);
        if (r < 0)
            return r;
    }
    *outlet_at(outlet, outlet->count++) = packet_ref(packet);
    outlet->bytes += packet->length;
    return 0;
}

int outlet_raw(struct outlet *outlet, const void *data, size_t length)
{
    buffer_append(&outlet->control, data, length);
    return buffer_failed(&outlet->control) ? -ERROR_BUSY : 0;
}

int outlet_control(struct outlet *outlet, enum packet_opcode opcode, const void *payload,
                   size_t length)
{
    uint8_t frame[PACKET_HEADER_MAX + 125];
    ASSERT(length <= 125);
    size_t header_length = packet_header(opcode, length, frame);
    if (length > 0)
        memcpy(frame + header_length, payload, length);
    return outlet_raw(outlet, frame, header_length + length);
}

void outlet_drop_backlog(struct outlet *outlet)
{
    uint32_t kept = outlet->first_sent > 0;
    while (outlet->count > kept) {
        struct packet *packet = *outlet_at(outlet, outlet->count - 1);
        outlet->bytes -= packet->length;
        outlet->count--;
        packet_unref(packet);
    }
    if (outlet->count == 0)
        outlet_shrink(outlet);
}

bool outlet_is_empty(const struct outlet *outlet)
{
    return outlet->count == 0 && outlet->control.length == 0;
}

size_t outlet_unsent(const struct outlet *outlet)
{
    return outlet->bytes - outlet->first_sent;
}

// Order: the rest of a partly sent packet, control bytes, packets.
static int iov_fill(struct outlet *outlet, struct iovec *iov)
{
    int count = 0;
    uint32_t index = 0;
    if (outlet->first_sent > 0) {
        struct packet *packet = *outlet_at(outlet, index++);
        iov[count++] =
            (struct iovec){packet->data + outlet->first_sent, packet->length - outlet->first_sent};
    }
    if (outlet->control.length > 0)
        iov[count++] = (struct iovec){outlet->control.data + outlet->control_sent,
                                      outlet->control.length - outlet->control_sent};
    while (index < outlet->count && count < IOV_COUNT) {
        struct packet *packet = *outlet_at(outlet, index++);
        iov[count++] = (struct iovec){packet->data, packet->length};
    }
    return count;
}

static size_t packet_consume(struct outlet *outlet, size_t length)
{
    const struct packet *packet = *outlet_at(outlet, 0);
    size_t left = packet->length - outlet->first_sent;
    if (length < left) {
        outlet->first_sent += (uint32_t)length;
        return 0;
    }
    if (packet->event_us > 0)
        metric_time(METRIC_TIMES_DELIVERY, clock_wall_us() - packet->event_us);
    outlet_pop(outlet);
    return length - left;
}

static void outlet_consume(struct outlet *outlet, size_t length)
{
    if (outlet->first_sent > 0)
        length = packet_consume(outlet, length);
    size_t control_left = outlet->control.length - outlet->control_sent;
    if (control_left > 0 && length > 0) {
        size_t part = length < control_left ? length : control_left;
        outlet->control_sent += part;
        length -= part;
        if (outlet->control_sent == outlet->control.length) {
            buffer_done(&outlet->control);
            outlet->control_sent = 0;
        }
    }
    while (length > 0)
        length = packet_consume(outlet, length);
}

int outlet_flush(struct outlet *outlet, int fd)
{
    struct iovec iov[IOV_COUNT];
    while (!outlet_is_empty(outlet)) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)iov_fill(outlet, iov)};
        ssize_t length = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return errno == EAGAIN ? 1 : -ERROR_UNAVAILABLE;
        outlet_consume(outlet, (size_t)length);
    }
    return 0;
}
