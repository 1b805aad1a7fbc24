// SPDX-License-Identifier: Apache-2.0
// Opens, pings, refuses and closes WebSockets of clients and apps.
#include "socket.h"

#include "../connection/connection.h"
#include "../connection/outlet.h"
#include "../connection/packet.h"
#include "handshake.h"

#include "base/loop.h"

#include <string.h>
#include <sys/epoll.h>

static const char expired[] =
    "{\"type\":\"error\",\"error\":{\"code\":1,\"msg\":\"Socket URL has expired\"}}";

void socket_open(struct connection *c, const char *reply, void (*hello)(struct connection *c))
{
    if (outlet_raw(&c->outlet, reply, strlen(reply)) < 0) {
        connection_abort(c);
        return;
    }
    connection_begin(c);
    hello(c);
}

void socket_answer(struct connection *c, const char *text, size_t length)
{
    if (c->state != CONNECTION_OPEN)
        return;
    struct packet *packet = packet_new(text, length);
    connection_push(c, packet);
    packet_unref(packet);
}

void socket_ping(struct connection *c, int64_t now_ms)
{
    if (outlet_control(&c->outlet, PACKET_PING, &now_ms, sizeof now_ms) < 0)
        connection_slow(c);
    connection_mark_dirty(c);
}

void socket_end(struct connection *c)
{
    char payload[125] = {(char)(c->close_code >> 8), (char)(c->close_code & 0xff)};
    size_t length = strlen(c->close_reason);
    memcpy(payload + 2, c->close_reason, length);
    outlet_drop_backlog(&c->outlet);
    if (outlet_control(&c->outlet, PACKET_CLOSE, payload, 2 + length) < 0) {
        connection_abort(c);
        return;
    }
    connection_end(c);
}

// An invalid ticket: upgrades, so that the client receives the error frame, then closes.
static void socket_expire(struct connection *c, const char *reply)
{
    struct packet *packet = packet_new(expired, sizeof expired - 1);
    bool fits = packet && outlet_raw(&c->outlet, reply, strlen(reply)) >= 0 &&
                outlet_raw(&c->outlet, packet->data, packet->length) >= 0;
    packet_unref(packet);
    if (!fits) {
        connection_abort(c);
        return;
    }
    c->state = CONNECTION_OPEN;
    loop_io_set(c->io, EPOLLIN);
    connection_close(c, CLOSE_POLICY, "expired");
}

void socket_refuse(struct connection *c, int status, const char *reply)
{
    if (status == 401)
        socket_expire(c, reply);
    else
        connection_refuse(c, status == 400 ? handshake_bad_request : handshake_unavailable);
}
