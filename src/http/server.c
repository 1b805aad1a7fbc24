// SPDX-License-Identifier: Apache-2.0
// A loop's HTTP server: starts, drains and stops what it is made of.
#include "server_internal.h"

#include "acceptor.h"
#include "exchange.h"
#include "gzip.h"
#include "http_connection.h"
#include "job_thread.h"
#include "page_daemon.h"
#include "transfer_thread.h"

#include "base/check.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// If CPUs are scarce, large bodies yield to loops and Postgres.
enum { PARSER_NICE = 15 };

static void server_tick(void *arg)
{
    struct server *server = CAST(server, arg);
    connections_expire(server);
    acceptor_resume(server);
    loop_timer_set(server->tick, SERVER_TICK_MS);
}

static void server_init(struct server *server, struct loop *loop,
                        const struct server_options *options)
{
    server->tag = TAG(server);
    server->loop = loop;
    server->options = *options;
    server->listen_fd = -1;
    server->spare_fd = -1;
    list_init(&server->calls);
    list_init(&server->spares);
    server->intake =
        (struct intake){.bytes_max = options->settings.bodies_bytes,
                        .owner_bytes_max = options->settings.user_bodies_bytes,
                        .strangers_bytes_max = options->settings.strangers_bodies_bytes,
                        .gauge = METRIC_BODIES_BYTES,
                        .refused_all = METRIC_BODIES_ALL,
                        .refused_owner = METRIC_BODIES_USER,
                        .refused_strangers = METRIC_BODIES_STRANGERS};
    server->outgo = (struct intake){.bytes_max = options->settings.replies_bytes,
                                    .owner_bytes_max = options->settings.user_replies_bytes,
                                    .strangers_bytes_max = options->settings.user_replies_bytes,
                                    .gauge = METRIC_REPLIES_BYTES,
                                    .refused_all = METRIC_REPLIES_ALL,
                                    .refused_owner = METRIC_REPLIES_USER,
                                    .refused_strangers = METRIC_REPLIES_USER};
    for (int state = 0; state < CONNECTION_STATES; state++)
        list_init(&server->connections[state]);
    server->timeout_ms[CONNECTION_FRESH] = options->settings.header_timeout_ms;
    server->timeout_ms[CONNECTION_HEADERS] = options->settings.header_timeout_ms;
    server->timeout_ms[CONNECTION_BODY] = options->settings.body_timeout_ms;
    server->timeout_ms[CONNECTION_REPLY] = options->settings.body_timeout_ms;
    server->timeout_ms[CONNECTION_IDLE] = options->settings.idle_timeout_ms;
    server->timeout_ms[CONNECTION_LINGER] = SERVER_LINGER_MS;
    random_fill(&server->id_base, sizeof server->id_base);
}

static int server_start(struct server *server)
{
    int r = page_daemon_start(server);
    if (r < 0)
        return r;
    r = loop_timer_new(server->loop, server_tick, server, &server->tick);
    if (r < 0)
        return r;
    loop_timer_set(server->tick, SERVER_TICK_MS);
    r = job_thread_new(server->loop, PARSER_NICE, &server->parser);
    if (r < 0)
        return r;
    r = job_thread_new(server->loop, 0, &server->long_replies);
    if (r < 0)
        return r;
    r = transfer_thread_new(server->loop, server->options.settings.body_timeout_ms,
                            &server->transfers);
    if (r < 0)
        return r;
    r = acceptor_open(server);
    if (r < 0)
        return r;
    // Last, because it cannot be undone.
    return loop_idle_add(server->loop, page_daemon_idle, server);
}

int server_new(struct loop *loop, const struct server_options *options, struct server **ret_server)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server)
        return -ERROR_MEMORY;
    server_init(server, loop, options);
    int r = server_start(server);
    if (r < 0) {
        server_free(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

int server_port(const struct server *server)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(server->listen_fd, (struct sockaddr *)&address, &length) < 0)
        return -ERROR_UNAVAILABLE;
    in_port_t port = address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                   : ((struct sockaddr_in *)&address)->sin_port;
    return ntohs(port);
}

static struct server_page *page_new(struct server *server, const char *path)
{
    ASSERT(path[0] == '/');
    struct server_page *page = calloc(1, sizeof *page);
    char *copy = strdup(path);
    if (!page || !copy) {
        free(page);
        free(copy);
        return NULL;
    }
    page->path = copy;
    page->next = server->pages;
    server->pages = page;
    return page;
}

int server_page_add(struct server *server, const char *path, server_page_fn *fn, void *arg)
{
    return server_page_add_cached(server, path, "no-store", fn, arg);
}

int server_page_add_cached(struct server *server, const char *path, const char *cache,
                           server_page_fn *fn, void *arg)
{
    ASSERT(fn);
    struct server_page *page = page_new(server, path);
    if (!page)
        return -ERROR_MEMORY;
    page->fn = fn;
    page->arg = arg;
    page->cache = cache;
    return 0;
}

int server_file_add(struct server *server, const char *path, const struct server_file *file)
{
    char digest[DIGEST_HEX_SIZE];
    struct server_page *page = page_new(server, path);
    if (!page)
        return -ERROR_MEMORY;
    page->file = *file;
    digest_sha256_hex(file->data, file->length, digest);
    snprintf(page->etag, sizeof page->etag, "\"%s\"", digest);
    return 0;
}

int server_calls(const struct server *server)
{
    return server->calls_count;
}

int server_connections(const struct server *server)
{
    return server->connections_count;
}

static void connections_close(struct server *server)
{
    for (int state = 0; state < CONNECTION_STATES; state++) {
        LIST_FOREACH(link, &server->connections[state])
        {
            connection_free(LIST_ITEM(link, struct http_connection, link));
        }
    }
}

// Idle connections stay open: a proxy may already have sent its next request. Connections waiting
// to be accepted are accepted, since closing the listening socket would reset them.
void server_quiesce(struct server *server)
{
    server->quiescing = true;
    acceptor_accept_waiting(server);
    acceptor_close(server);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    acceptor_close(server);
    job_thread_free(server->parser); // its results may still be compressed
    job_thread_free(TAKE(server->long_replies));
    transfer_thread_free(server->transfers);
    page_daemon_stop(server);
    connections_close(server);
    loop_timer_free(server->tick);
    exchanges_free_spares(server);
    exchanges_forget(server);
    gzip_free(server->gzip);
    gzip_free(server->gzip_long);
    while (server->pages) {
        struct server_page *page = server->pages;
        server->pages = page->next;
        free(page->path);
        free(page);
    }
    TAGGED_FREE(server);
}
