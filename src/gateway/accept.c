// SPDX-License-Identifier: Apache-2.0
// Reads the head of a request, and hands the connection to the kind that it asks for.
#include "accept.h"

#include "connection.h"
#include "core.h"
#include "socket_mode/link.h"
#include "sse/sse.h"
#include "sse/sse_head.h"
#include "websocket/handshake.h"
#include "websocket/websocket.h"

static void upgrade(struct connection *c, size_t head_length)
{
    struct handshake handshake;
    const char *refusal = handshake_read(c->input.data, head_length, &handshake);
    if (c->gateway->draining)
        refusal = handshake_unavailable;
    if (refusal) {
        connection_refuse(c, refusal);
        return;
    }
    buffer_consume(&c->input, head_length); // what came behind it is taken after hello
    if (handshake.is_link)
        link_accept(c, &handshake);
    else
        websocket_accept(c, &handshake);
}

static void head_read(struct connection *c)
{
    size_t length = handshake_head_length(c->input.data, c->input.length);
    if (length > 0 && sse_head_is_one(c->input.data, length))
        sse_accept(c, length);
    else if (length > 0)
        upgrade(c, length);
    else if (buffer_failed(&c->input) || c->input.length == CONNECTION_HEAD_MAX)
        connection_refuse(c, handshake_too_large);
}

static int head_input(struct connection *c, const char *data, size_t length)
{
    buffer_append(&c->input, data, length);
    head_read(c);
    return 0;
}

static const struct connection_ops head_ops = {.input = head_input};

void accept_connection(struct gateway *gateway, int fd, const char *head, size_t length)
{
    struct connection *c = connection_adopt(gateway, fd, &head_ops);
    if (c)
        (void)head_input(c, head, length);
}
