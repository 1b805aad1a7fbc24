// SPDX-License-Identifier: Apache-2.0
// Lingering close: a peer that is still sending loses the reply when the connection is closed under
// what it sends. So after the last reply the rest is read and thrown away for a while.
#include "lingering_close.h"

#include "http_connection.h"
#include "server_internal.h"

#include "base/check.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// So that many who are refused at once do not hold up a turn; the rest is read in the next.
enum { READS_A_TURN = 4, READ_BYTES = 65536 };

static void lingering_close_ready(void *arg, uint32_t events)
{
    struct http_connection *connection = CAST(http_connection, arg);
    (void)events;
    for (int i = 0; i < READS_A_TURN; i++) {
        // TCP throws away what it is not given room for.
        ssize_t length = recv(connection->fd, NULL, READ_BYTES, MSG_TRUNC);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length > 0)
            connection->bytes -= length;
        if (length <= 0 || connection->bytes <= 0) {
            connection_free(connection);
            return;
        }
    }
}

void lingering_close_start(struct server *server, int fd, int64_t budget, const char *text,
                           size_t length)
{
    struct http_connection *connection = connection_new(server, fd);
    if (!connection)
        return;
    connection->bytes = budget;
    connection_move(connection, CONNECTION_LINGER);
    // A few hundred bytes: they fit into the socket's buffer, or the peer does not read anyway.
    (void)!send(fd, text, length, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    if (loop_io_new_peer(server->loop, fd, EPOLLIN, lingering_close_ready, connection,
                         &connection->watch) < 0)
        connection_free(connection);
}
