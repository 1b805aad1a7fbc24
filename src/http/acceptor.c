// SPDX-License-Identifier: Apache-2.0
// Accepts connections, and refuses those that are too many.
#include "acceptor.h"

#include "http_connection.h"
#include "http_reader.h"
#include "listen.h"
#include "server_internal.h"

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_A_TURN = 64 };

static void acceptor_admit(struct server *server, int fd)
{
    if (server->connections_count >= server->options.settings.connections_max) {
        metric_add(METRIC_HTTP_CONNECTIONS_REFUSED, 1);
        close(fd);
        return;
    }
    struct http_connection *connection = connection_new(server, fd);
    if (connection)
        http_reader_start(connection);
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
