// SPDX-License-Identifier: Apache-2.0
// Passes a connection to the kind that its request asks for.
#include "accept.h"

#include "connection/connection.h"
#include "core.h"
#include "socket_mode/app_socket.h"
#include "sse/sse.h"
#include "websocket/handshake.h"
#include "websocket/websocket.h"

#include "http/head.h"
#include "http/path.h"

#include <string.h>

static void upgrade(struct connection *c, const struct http_head *head)
{
    struct handshake handshake;
    const char *refusal = handshake_read(head, &handshake);
    if (c->gateway->draining)
        refusal = handshake_unavailable;
    if (refusal)
        connection_refuse(c, refusal);
    else if (handshake.is_app_socket)
        app_socket_accept(c, &handshake);
    else
        websocket_accept(c, &handshake);
}

void accept_connection(struct gateway *gateway, int fd, const struct http_head *head)
{
    struct connection *c = connection_adopt(gateway, fd);
    if (!c)
        return;
    if (path_kind_of(head->target, strlen(head->target)) == PATH_EVENTS)
        sse_accept(c, head);
    else
        upgrade(c, head);
}
