// SPDX-License-Identifier: Apache-2.0
// Runs libmicrohttpd when its descriptors are ready, and at the end of turns that created work for
// it.
#include "daemon.h"

#include "server_internal.h"

#include "base/check.h"

#include <sys/epoll.h>

void daemon_run_soon(struct server *server)
{
    if (server->run_due)
        return;
    server->run_due = true;
    // This turn's run may be over already: the caller may be a later idle callback.
    loop_again(server->loop);
}

static void daemon_run(struct server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    MHD_run(server->daemon);
    // Each run serves one request, or one buffer, per connection. No event announces the rest.
    if (MHD_get_timeout(server->daemon, &timeout) == MHD_YES && timeout == 0)
        daemon_run_soon(server);
}

static void daemon_ready(void *arg, uint32_t events)
{
    (void)events;
    daemon_run(CAST(server, arg));
}

int daemon_watch(struct server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return loop_io_new(server->loop, info->epoll_fd, EPOLLIN, daemon_ready, server,
                       &server->daemon_watch);
}

void daemon_idle(void *arg)
{
    struct server *server = CAST(server, arg);
    if (!server->run_due)
        return;
    server->run_due = false;
    daemon_run(server);
    // Calls started by this run may have created work for other idle callbacks.
    loop_again(server->loop);
}
