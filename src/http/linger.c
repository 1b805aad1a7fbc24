// SPDX-License-Identifier: Apache-2.0
// A peer that is still sending does not read a reply before it is done, and loses it when the
// connection is closed under what it sends. So after the last word the rest is read and thrown away
// for a while.
#include "server_int.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static bool is_for_later(void)
{
    return errno == EAGAIN || errno == EINTR;
}

// Whether there is no more to send, or nobody to send it to.
static bool linger_send(struct connection *connection)
{
    struct buffer *unsent = &connection->unsent;
    while (connection->sent < unsent->length) {
        ssize_t sent = send(connection->fd, unsent->data + connection->sent,
                            unsent->length - connection->sent, MSG_NOSIGNAL);
        if (sent < 0)
            return !is_for_later();
        connection->sent += (size_t)sent;
    }
    return true;
}

static void linger_read(struct connection *connection)
{
    char waste[16384];
    for (;;) {
        ssize_t length = recv(connection->fd, waste, sizeof waste, 0);
        if (length < 0 && is_for_later())
            return;
        if (length > 0)
            connection->bytes -= length;
        if (length <= 0 || connection->bytes <= 0) {
            connection_free(connection);
            return;
        }
    }
}

static void linger_ready(void *arg, uint32_t events)
{
    struct connection *connection = arg;
    (void)events;
    if (connection->state == CONNECTION_LINGER) {
        linger_read(connection);
    } else if (linger_send(connection)) {
        shutdown(connection->fd, SHUT_WR);
        connection_move(connection, CONNECTION_LINGER);
        loop_watch_set(connection->watch, EPOLLIN);
    }
}

void linger_start(struct server *server, int fd, int64_t budget, struct buffer *text)
{
    struct connection *connection = connection_new(server, fd);
    if (connection == NULL)
        return;
    connection->bytes = budget;
    connection->unsent = *text;
    *text = (struct buffer){0};
    connection_move(connection, CONNECTION_REPLY);
    if (loop_watch_new(server->loop, fd, EPOLLOUT, linger_ready, connection, &connection->watch) <
        0)
        connection_free(connection);
    else
        linger_ready(connection, EPOLLOUT);
}
