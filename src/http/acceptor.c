// SPDX-License-Identifier: Apache-2.0
// Accepts connections and peeks at the first request head without consuming it, so that
// libmicrohttpd can take over an untouched connection.
#include "acceptor.h"

#include "exchange_reply.h"
#include "http_connection.h"
#include "listen.h"
#include "server_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/head.h"
#include "http/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_A_TURN = 64 };

// Consumes exactly the head: the rest is for the new owner to read.
static void acceptor_hand_over(struct http_connection *connection, size_t length)
{
    struct server *server = connection->server;
    struct http_head head;
    if (recv(connection->fd, server->head, length, 0) != (ssize_t)length) {
        connection_free(connection);
        return;
    }
    const char *reason = head_parse(server->head, length, &head);
    if (reason) {
        exchange_refuse_head(connection, 400, reason);
        return;
    }
    int fd = connection_take_fd(connection);
    server->options.on_takeover(server->options.arg, fd, &head);
}

static bool acceptor_is_takeover(const struct server *server, const struct head_progress *progress)
{
    return server->options.on_takeover &&
           path_kind_of(progress->target, progress->target_length) != PATH_OTHER;
}

// The number of bytes that make the descriptor readable: while a partial head is left unread, only
// more bytes are an event.
static void acceptor_wait_for(int fd, int bytes)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static void acceptor_ready(void *arg, uint32_t events);

static void acceptor_wait(struct http_connection *connection, ssize_t seen)
{
    struct server *server = connection->server;
    if (!connection->watch &&
        loop_io_new_peer(server->loop, connection->fd, EPOLLIN, acceptor_ready, connection,
                         &connection->watch) < 0) {
        connection_free(connection);
        return;
    }
    if (seen > 0) {
        connection->bytes = seen;
        acceptor_wait_for(connection->fd, (int)seen + 1);
    }
}

// Decides based on the `length` bytes received so far.
static void acceptor_decide(struct http_connection *connection, size_t length)
{
    struct server *server = connection->server;
    struct head_progress progress;
    const char *reason = head_scan(server->head, length, &progress);
    bool is_full = length == sizeof server->head;
    if (!reason && progress.length == 0 && !is_full) {
        acceptor_wait(connection, (ssize_t)length);
        return;
    }
    if (connection->bytes > 0)
        acceptor_wait_for(connection->fd, 1);
    if (reason)
        exchange_refuse_head(connection, 400, reason);
    else if (progress.length > 0 && acceptor_is_takeover(server, &progress))
        acceptor_hand_over(connection, progress.length);
    else if (progress.length > 0)
        connection_add_to_daemon(connection);
    else if (progress.line_length > 0)
        exchange_refuse_head(connection, 431, "the headers are too long");
    else
        exchange_refuse_head(connection, 414, "the request line is too long");
}

static void acceptor_peek(struct http_connection *connection, bool is_event)
{
    struct server *server = connection->server;
    ssize_t length = recv(connection->fd, server->head, sizeof server->head, MSG_PEEK);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        acceptor_wait(connection, 0);
        return;
    }
    // Readable without new bytes: the peer closed its side before the head was complete.
    if (length <= 0 || (is_event && length == connection->bytes)) {
        connection_free(connection);
        return;
    }
    acceptor_decide(connection, (size_t)length);
}

static void acceptor_ready(void *arg, uint32_t events)
{
    (void)events;
    acceptor_peek(CAST(http_connection, arg), true);
}

static void acceptor_admit(struct server *server, int fd)
{
    if (server->connections_count >= server->options.settings.connections_max) {
        metric_add(METRIC_HTTP_CONNECTIONS_REFUSED, 1);
        close(fd);
        return;
    }
    struct http_connection *connection = connection_new(server, fd);
    if (connection)
        acceptor_peek(connection, false);
}

// Without free descriptors, a waiting connection could be neither accepted nor refused, and the
// listening socket would stay readable forever. So close the spare descriptor, accept and close one
// connection, and reopen the spare. False if no connection was waiting.
static bool acceptor_refuse_one(struct server *server)
{
    close(server->spare_fd);
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        metric_add(METRIC_HTTP_DESCRIPTORS_SHORT, 1);
    }
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int64_t now_ms = loop_now_ms(server->loop);
    if (fd < 0 ||
        (server->short_logged_ms > 0 && now_ms - server->short_logged_ms < SERVER_SHORT_MS))
        return fd >= 0;
    server->short_logged_ms = now_ms;
    log_write(LOG_ERROR, "http", "refusing connections: the limit of open files is reached");
    return true;
}

static void acceptor_pause(struct server *server)
{
    server->accept_paused = true;
    loop_io_set(server->listen_watch, 0);
}

void acceptor_resume(struct server *server)
{
    if (!server->accept_paused || !server->listen_watch)
        return;
    server->accept_paused = false;
    loop_io_set(server->listen_watch, EPOLLIN);
}

static void acceptor_accept(void *arg, uint32_t events)
{
    struct server *server = CAST(server, arg);
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            acceptor_admit(server, fd);
        } else if ((errno == EMFILE || errno == ENFILE) && server->spare_fd >= 0) {
            if (!acceptor_refuse_one(server))
                return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_write(LOG_WARN, "http", "cannot accept: %s", strerror(errno));
            acceptor_pause(server);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

void acceptor_accept_waiting(struct server *server)
{
    if (server->listen_fd >= 0)
        acceptor_accept(server, 0);
}

int acceptor_open(struct server *server)
{
    int r = listen_on(server->options.settings.listen, &server->listen_fd);
    if (r < 0)
        return r;
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return loop_io_new(server->loop, server->listen_fd, EPOLLIN, acceptor_accept, server,
                       &server->listen_watch);
}

void acceptor_close(struct server *server)
{
    loop_io_free(server->listen_watch);
    server->listen_watch = NULL;
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    if (server->spare_fd >= 0)
        close(server->spare_fd);
    server->listen_fd = -1;
    server->spare_fd = -1;
}
