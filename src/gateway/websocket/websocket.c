// SPDX-License-Identifier: Apache-2.0
// A client's WebSocket: what it does as a connection.
#include "websocket.h"

#include "../connection.h"
#include "../gateway_session.h"
#include "../login.h"
#include "handshake.h"
#include "inbound.h"
#include "receive.h"
#include "socket.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>

static const struct connection_ops websocket_ops;

struct websocket {
    struct socket socket;
    struct inbound inbound;
};

static struct websocket *websocket_of(const struct connection *c)
{
    assert(c->ops == &websocket_ops);
    return c->kind;
}

int websocket_make(struct connection *c)
{
    struct websocket *websocket = calloc(1, sizeof *websocket);
    if (!websocket)
        return -ERROR_MEMORY;
    inbound_init(&websocket->inbound, c);
    c->kind = websocket;
    c->ops = &websocket_ops;
    return 0;
}

void websocket_accept(struct connection *c, const struct handshake *handshake)
{
    if (websocket_make(c) < 0) {
        connection_refuse(c, handshake_unavailable);
        return;
    }
    connection_wait(c);
    login_ticket(c, handshake->ticket, handshake->reply);
}

static int websocket_admit(const struct connection *c, int r, bool known)
{
    if (r < 0)
        return 503;
    return known && c->actor.type != 'a' ? 0 : 401;
}

static void hello_send(struct connection *c)
{
    static const char hello[] = "{\"type\":\"hello\"}";
    connection_send_text(c, hello, sizeof hello - 1);
}

void websocket_hello(struct connection *c, const char *reply)
{
    socket_open(c, reply, hello_send);
}

static void websocket_open(struct connection *c, const struct result *channels, const char *reply)
{
    if (session_enter(c, channels) < 0)
        connection_refuse(c, handshake_unavailable);
    else
        websocket_hello(c, reply);
}

static void message_take(struct connection *c, const char *text, size_t length)
{
    inbound_message(&websocket_of(c)->inbound, text, length);
}

static int websocket_input(struct connection *c, const char *data, size_t length)
{
    return receive(c, &websocket_of(c)->socket, message_take, data, length);
}

static void websocket_send(struct connection *c, struct packets *packets)
{
    connection_push(c, packets_frame(packets));
}

static void websocket_deliver(struct connection *c, const struct stream *stream,
                              const struct stream_item *item, struct packets *packets)
{
    (void)stream, (void)item;
    connection_send(c, packets);
}

static void websocket_announce(struct connection *c, enum announcement what)
{
    static const char goodbye[] = "{\"type\":\"goodbye\"}";
    if (what == ANNOUNCE_DRAIN)
        connection_send_text(c, goodbye, sizeof goodbye - 1);
}

static void websocket_leave(struct connection *c)
{
    inbound_forget(&websocket_of(c)->inbound);
    session_leave(c);
}

static void websocket_free(void *kind)
{
    struct websocket *websocket = kind;
    receive_done(&websocket->socket);
    free(websocket);
}

static const struct connection_ops websocket_ops = {
    .open_metric = METRIC_SOCKETS_OPEN,
    .must_answer = true,
    .channels = &session_channels,
    .admit = websocket_admit,
    .refuse = socket_refuse,
    .open = websocket_open,
    .input = websocket_input,
    .ping = socket_ping,
    .send = websocket_send,
    .deliver = websocket_deliver,
    .gap = connection_gap,
    .announce = websocket_announce,
    .end = socket_end,
    .leave = websocket_leave,
    .free = websocket_free,
};
