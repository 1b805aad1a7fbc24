// SPDX-License-Identifier: Apache-2.0
// Lingering close. If a connection is closed while its peer is still sending, the peer loses the
// reply. So after the last reply, incoming bytes are read and discarded for a while.
#include "lingering_close.h"

#include "http_connection.h"
#include "server_internal.h"

#include "base/check.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// Limits what many refused peers can take of a turn; the rest is read in the next.
enum { READS_A_TURN = 4, READ_BYTES = 65536 };

static void lingering_close_ready(void *arg, uint32_t events)
{
    struct http_connection *connection = CAST(http_connection, arg);
    (void)events;
    for (int i = 0; i < READS_A_TURN; i++) {
        // With MSG_TRUNC, TCP discards the bytes without copying them.
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

void lingering_close_start(struct http_connection *connection, int64_t budget)
{
    connection->bytes = budget;
    connection_move(connection, CONNECTION_LINGER);
    shutdown(connection->fd, SHUT_WR);
    loop_io_free(connection->watch);
    connection->watch = NULL;
    if (loop_io_new_peer(connection->server->loop, connection->fd, EPOLLIN, lingering_close_ready,
                         connection, &connection->watch) < 0)
        connection_free(connection);
}
