// SPDX-License-Identifier: Apache-2.0
// Connections and their deadlines. A connection is in the list of its state. All deadlines of a
// state are equally long, so each list is sorted, and a search for expired ones costs only what has
// expired.
#include "http_connection.h"

#include "daemon.h"
#include "mhd_quirks.h"
#include "server_internal.h"

#include "base/check.h"
#include "base/metrics.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
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
    bool is_ours = !connection->mhd;
    void (*on_free)(void *) = connection->on_free;
    void *arg = connection->on_free_arg;
    int fd = connection_take_fd(connection);
    if (is_ours)
        close(fd);
    if (on_free)
        on_free(arg);
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

struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info && info->socket_context ? CAST(http_connection, info->socket_context) : NULL;
}

void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct server *server = CAST(server, arg);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        ASSERT(server->adding);
        *context = server->adding;
        server->adding->mhd = mhd;
        server->adding = NULL;
    } else {
        connection_free(CAST(http_connection, *context));
        *context = NULL;
    }
}

void connection_add_to_daemon(struct http_connection *connection)
{
    struct server *server = connection->server;
    // libmicrohttpd requires an address, for limits and logs that we do not use.
    struct sockaddr_in nobody = {.sin_family = AF_INET};
    loop_io_free(connection->watch);
    connection->watch = NULL;
    ASSERT(!server->adding && !connection->mhd);
    server->adding = connection;
    enum MHD_Result added = MHD_add_connection(server->daemon, connection->fd,
                                               (struct sockaddr *)&nobody, sizeof nobody);
    if (added == MHD_YES || !server->adding)
        return;
    // Refused before the notification: libmicrohttpd has closed the descriptor already.
    server->adding = NULL;
    (void)connection_take_fd(connection);
}

void connection_leaves_daemon(struct http_connection *connection)
{
    connection_move(connection, CONNECTION_CLOSING);
    daemon_run_soon(connection->server);
}

int connection_detach(struct http_connection *connection, int *ret_fd)
{
    int r = mhd_descriptor_take(connection->mhd, connection->fd, ret_fd);
    connection_leaves_daemon(connection);
    return r;
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
    if (connection->mhd)
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

// One check soon after the reply is enough: see mhd_end_is_missed().
void connections_end_half_closed(struct server *server)
{
    struct list *idle = &server->connections[CONNECTION_IDLE];
    int64_t since_ms = server->looked_ms + server->timeout_ms[CONNECTION_IDLE];
    if (server->run_due)
        return;
    server->looked_ms = loop_now_ms(server->loop);
    for (struct list *link = idle->previous, *previous; link != idle; link = previous) {
        struct http_connection *connection = LIST_ITEM(link, struct http_connection, link);
        previous = link->previous;
        if (connection->deadline_ms < since_ms)
            return;
        if (mhd_end_is_missed(connection->fd))
            connection_hang_up(connection);
    }
}
