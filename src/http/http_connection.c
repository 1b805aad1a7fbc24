// SPDX-License-Identifier: Apache-2.0
// Connections and their deadlines. A connection is in the list of its state. All deadlines of a
// state are equally long, so each list is sorted, and a search for expired ones costs only what has
// expired.
#include "http_connection.h"

#include "exchange.h"
#include "server_internal.h"

#include "base/check.h"
#include "base/metrics.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_BYTES_MIN = 65536 };

struct http_connection *connection_new(struct server *server, int fd)
{
    struct http_connection *connection = TAGGED_NEW(http_connection);
    if (!connection) {
        close(fd);
        return NULL;
    }
    connection->server = server;
    connection->fd = fd;
    connection->page_fd = -1;
    list_init(&connection->link);
    connection_move(connection, CONNECTION_FRESH);
    server->connections_count++;
    metric_add(METRIC_HTTP_CONNECTIONS, 1);
    return connection;
}

int connection_take_fd(struct http_connection *connection)
{
    int fd = connection->fd;
    ASSERT(connection->server->connections_count > 0);
    connection->server->connections_count--;
    metric_add(METRIC_HTTP_CONNECTIONS, -1);
    list_remove(&connection->link);
    loop_io_free(connection->watch);
    TAGGED_FREE(connection);
    return fd;
}

void connection_free(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    ASSERT(connection->page_fd < 0);
    close(connection_take_fd(connection));
    if (exchange)
        exchange_leave(exchange);
}

void connection_move(struct http_connection *connection, enum http_connection_state state)
{
    struct server *server = connection->server;
    ASSERT((unsigned)state < CONNECTION_STATES);
    connection->state = state;
    connection->deadline_ms = loop_now_ms(server->loop) + server->timeout_ms[state];
    list_remove(&connection->link);
    list_append(&server->connections[state], &connection->link);
}

bool connection_consume(const struct http_connection *connection, size_t length)
{
    // With MSG_TRUNC, TCP discards the bytes without copying them.
    return length == 0 || recv(connection->fd, NULL, length, MSG_TRUNC) == (ssize_t)length;
}

// Makes libmicrohttpd notice a hang-up and clean up.
static void connection_hang_up(struct http_connection *connection)
{
    shutdown(connection->fd, SHUT_RDWR);
    connection_move(connection, CONNECTION_CLOSING);
}

// Whether the peer still reads its reply, which may be tens of megabytes: it has acknowledged
// enough bytes since the last check.
static bool connection_is_reading(struct http_connection *connection)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(connection->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return false;
    int64_t before = connection->bytes;
    connection->bytes = (int64_t)info.tcpi_bytes_acked;
    return connection->bytes - before >= REPLY_BYTES_MIN;
}

static void connection_expire(struct http_connection *connection)
{
    if (connection->state == CONNECTION_REPLY && connection_is_reading(connection)) {
        connection_move(connection, CONNECTION_REPLY);
        return;
    }
    switch (connection->state) {
    case CONNECTION_FRESH:
    case CONNECTION_HEADERS:
        metric_add(METRIC_HTTP_DEADLINE_HEADERS, 1);
        break;
    case CONNECTION_BODY:
        metric_add(METRIC_HTTP_DEADLINE_BODY, 1);
        break;
    default:
        break;
    }
    // A peer that does not read its reply gets no more time from the kernel either: reset the
    // connection.
    struct linger none = {.l_onoff = 1};
    if (connection->state == CONNECTION_REPLY)
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    if (connection->page_fd >= 0)
        connection_hang_up(connection);
    else
        connection_free(connection);
}

void connections_expire(struct server *server)
{
    int64_t now_ms = loop_now_ms(server->loop);
    for (int state = 0; state < CONNECTION_STATES; state++) {
        if (server->timeout_ms[state] == 0)
            continue;
        LIST_FOREACH(link, &server->connections[state])
        {
            struct http_connection *connection = LIST_ITEM(link, struct http_connection, link);
            if (connection->deadline_ms > now_ms)
                break;
            connection_expire(connection);
        }
    }
}
