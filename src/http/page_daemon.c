// SPDX-License-Identifier: Apache-2.0
// Serves pages by libmicrohttpd, which gets a duplicate of the descriptor of a connection whose
// next request is for a page: http_reader.c has checked its head, and left it unread. Only public
// functions of the library are used. It answers the one request, then closes its descriptor; ours
// is for a lingering close.
#include "page_daemon.h"

#include "exchange_reply.h"
#include "http_connection.h"
#include "lingering_close.h"

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

// libmicrohttpd keeps copies of cookies and query arguments beside the head.
enum { PAGES_MEMORY_BYTES = 8 * SERVER_HEAD_MAX_BYTES };

static void daemon_run_soon(struct server *server)
{
    server->daemon_due = true;
    loop_again(server->loop);
}

static void daemon_run(struct server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    MHD_run(server->daemon);
    // No event announces what a run has left.
    if (MHD_get_timeout(server->daemon, &timeout) == MHD_YES && timeout == 0)
        daemon_run_soon(server);
}

static void daemon_ready(void *arg, uint32_t events)
{
    (void)events;
    daemon_run(CAST(server, arg));
}

void page_daemon_idle(void *arg)
{
    struct server *server = CAST(server, arg);
    if (!server->daemon_due)
        return;
    server->daemon_due = false;
    daemon_run(server);
}

// The connection that libmicrohttpd has the duplicate `fd` of. The newest are last.
static struct http_connection *connection_find(const struct server *server, int fd)
{
    const struct list *served = &server->connections[CONNECTION_REPLY];
    for (struct list *link = served->previous; link != served; link = link->previous) {
        struct http_connection *connection = LIST_ITEM(link, struct http_connection, link);
        if (connection->page_fd == fd)
            return connection;
    }
    return NULL;
}

static void page_end(struct http_connection *connection)
{
    struct exchange *exchange = connection->exchange;
    int64_t budget = exchange_linger_bytes(exchange);
    connection->exchange = NULL;
    connection->page_fd = -1;
    exchange_free(exchange);
    lingering_close_start(connection, budget);
}

static void daemon_notify(void *arg, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct server *server = CAST(server, arg);
        *context = connection_find(server, info->connect_fd);
        server->adding = NULL;
    } else if (*context) {
        page_end(CAST(http_connection, *context));
        *context = NULL;
    }
}

static struct MHD_Response *file_response(struct exchange *exchange)
{
    const struct server_file *file = &exchange->page->file;
    const char *known = exchange->head.if_none_match;
    bool is_known = known && strstr(known, exchange->page->etag);
    exchange->content_type = file->type;
    exchange->request.status = is_known ? 304 : 200;
    return MHD_create_response_from_buffer(is_known ? 0 : file->length, (void *)file->data,
                                           MHD_RESPMEM_PERSISTENT);
}

static struct MHD_Response *page_response(struct exchange *exchange)
{
    const struct server_page *page = exchange->page;
    struct request *request = &exchange->request;
    if (!page->fn)
        return file_response(exchange);
    request->status =
        page->fn(page->arg, exchange->head.target, &request->reply, &exchange->content_type);
    if (buffer_failed(&request->reply))
        exchange_plain_error(exchange, 500, error_code(-ERROR_INTERNAL), NULL);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        request->reply.length, request->reply.data, MHD_RESPMEM_MUST_FREE);
    if (response)
        request->reply.data = NULL;
    return response;
}

// Called when libmicrohttpd has read the head. It answers before any body.
static enum MHD_Result page_answer(void *arg, struct MHD_Connection *mhd, const char *path,
                                   const char *verb, const char *version, const char *data,
                                   size_t *size, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    (void)arg, (void)path, (void)verb, (void)version, (void)data, (void)size, (void)context;
    if (!info->socket_context)
        return MHD_NO;
    struct exchange *exchange = CAST(http_connection, info->socket_context)->exchange;
    struct reply_header headers[REPLY_HEADERS_MAX];
    struct MHD_Response *response = page_response(exchange);
    if (!response)
        return MHD_NO;
    int count = exchange_headers(exchange, headers);
    for (int i = 0; i < count; i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    enum MHD_Result queued = MHD_queue_response(mhd, (unsigned)exchange->request.status, response);
    MHD_destroy_response(response);
    return queued;
}

void page_daemon_take(struct http_connection *connection)
{
    struct server *server = connection->server;
    // libmicrohttpd requires an address, for limits and logs that we do not use.
    struct sockaddr_in nobody = {.sin_family = AF_INET};
    loop_io_free(connection->watch);
    connection->watch = NULL;
    connection_move(connection, CONNECTION_REPLY);
    connection->page_fd = fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);
    server->adding = connection;
    if (connection->page_fd >= 0 &&
        MHD_add_connection(server->daemon, connection->page_fd, (struct sockaddr *)&nobody,
                           sizeof nobody) == MHD_YES) {
        daemon_run_soon(server);
    } else if (server->adding) {  // refused before the notification
        connection->page_fd = -1; // libmicrohttpd has closed it
        connection_free(connection);
    }
    server->adding = NULL;
}

int page_daemon_start(struct server *server)
{
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
                                      page_answer, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                                      daemon_notify, server, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                      (size_t)PAGES_MEMORY_BYTES, MHD_OPTION_CONNECTION_LIMIT,
                                      (unsigned)server->options.settings.connections_max + 1,
                                      MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_END);
    if (!server->daemon) {
        log_write(LOG_ERROR, "http", "cannot start libmicrohttpd");
        return -ERROR_UNAVAILABLE;
    }
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return loop_io_new(server->loop, info->epoll_fd, EPOLLIN, daemon_ready, server,
                       &server->daemon_watch);
}

void page_daemon_stop(struct server *server)
{
    loop_io_free(server->daemon_watch);
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
}
