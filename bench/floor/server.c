// SPDX-License-Identifier: Apache-2.0
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECTION_BYTES                                                                           \
    4096 // libmicrohttpd clears so much after each request: its own 32 KB cost a microsecond
#define TICK_MS 100 // libmicrohttpd looks at its listening socket again only when it is run
#define EVENTS_MAX 8

struct server {
    struct MHD_Daemon *daemon;
    struct server_plan plan;
    struct server_request
        *spare; // those of answered posts, the last used first: its memory is still in the cache
    int epoll;
    unsigned connections; // when it was last looked
};

void server_queue_init(struct server_queue *queue)
{
    *queue = (struct server_queue){.last = &queue->first};
}

void server_queue_push(struct server_queue *queue, struct server_request *request)
{
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
    queue->count++;
}

struct server_request *server_queue_pop(struct server_queue *queue)
{
    struct server_request *request = queue->first;

    queue->first = request->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->count--;
    return request;
}

static struct MHD_Response *make_response(struct server_request *request)
{
    char *long_reply = request->long_reply;

    if (!long_reply)
        return MHD_create_response_from_buffer(request->reply_len, request->reply,
                                               MHD_RESPMEM_PERSISTENT);
    request->long_reply = NULL;
    return MHD_create_response_from_buffer(request->reply_len, long_reply, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result send_reply(struct server_request *request)
{
    struct MHD_Response *response = make_response(request);
    enum MHD_Result result;

    MHD_add_response_header(response, "Content-Type", "application/json; charset=utf-8");
    result = MHD_queue_response(request->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static struct server_request *request_take(struct server *server, struct MHD_Connection *connection)
{
    struct server_request *request = server->spare;

    if (request)
        server->spare = request->next;
    else
        request = tool_alloc(1, server->plan.request_bytes);
    request->connection = connection;
    request->body_len = request->reply_len = 0;
    return request;
}

static enum MHD_Result body_add(struct server_request *request, const char *data, size_t *data_len)
{
    if (*data_len > SERVER_BODY_MAX - request->body_len)
        return MHD_NO;
    memcpy(request->body + request->body_len, data, *data_len);
    request->body_len += *data_len;
    *data_len = 0;
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **state)
{
    struct server *server = cls;
    struct server_request *request = *state;

    (void)method;
    (void)version;
    if (!request) {
        *state = request_take(server, connection);
        return MHD_YES;
    }
    if (*data_len > 0)
        return body_add(request, data, data_len);
    if (request->reply_len == 0)
        server->plan.on_request(server->plan.owner, request, url);
    if (request->reply_len > 0)
        return send_reply(request);
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct server *server = cls;
    struct server_request *request = *state;

    (void)connection;
    (void)code;
    if (!request)
        return;
    if (server->plan.on_done)
        server->plan.on_done(server->plan.owner, request);
    free(request->long_reply);
    request->long_reply = NULL;
    request->next = server->spare;
    server->spare = request;
}

// A watch of NULL is that of libmicrohttpd.
static void control(struct server *server, int fd, int operation, struct server_watch *watch)
{
    bool writes = watch && watch->writes;
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0u), .data.ptr = watch};

    if (epoll_ctl(server->epoll, operation, fd, &event) < 0)
        tool_die("epoll_ctl: %s", strerror(errno));
}

void server_watch_add(struct server *server, struct server_watch *watch)
{
    control(server, watch->fd, EPOLL_CTL_ADD, watch);
}

void server_watch_writes(struct server *server, struct server_watch *watch, bool writes)
{
    if (writes == watch->writes)
        return;
    watch->writes = writes;
    control(server, watch->fd, EPOLL_CTL_MOD, watch);
}

struct server *server_new(unsigned port, const struct server_plan *plan)
{
    struct server *server = tool_alloc(1, sizeof(*server));
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    server->plan = *plan;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
        server, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT, 2000u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_END);
    if (!server->daemon)
        tool_die("cannot listen: %s", strerror(errno));
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    control(server, MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
            EPOLL_CTL_ADD, NULL);
    return server;
}

void server_free(struct server *server)
{
    struct server_request *request;

    MHD_stop_daemon(server->daemon);
    while ((request = server->spare)) {
        server->spare = request->next;
        free(request);
    }
    close(server->epoll);
    free(server);
}

// It takes a few at a time, and does not say that there are more.
static bool has_new_connections(struct server *server)
{
    unsigned connections =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
    bool has_new = connections > server->connections;

    server->connections = connections;
    return has_new;
}

// 0 while libmicrohttpd has connections left to turn to: those that were resumed, for one.
static int wait_ms(struct server *server)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (has_new_connections(server))
        return 0;
    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES && ms < TICK_MS)
        return (int)ms;
    return TICK_MS;
}

void server_run_once(struct server *server)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(server->epoll, events, EVENTS_MAX, wait_ms(server));

    for (int i = 0; i < count; i++) {
        struct server_watch *watch = events[i].data.ptr;

        if (watch)
            watch->on_ready(watch->owner);
    }
    MHD_run(server->daemon);
}

void server_answer(struct server_request *request)
{
    MHD_resume_connection(request->connection);
}

const char *server_request_token(const struct server_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *value =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Authorization");

    if (!value || strncmp(value, scheme, sizeof(scheme) - 1) != 0)
        tool_die("a request without a token");
    return value + sizeof(scheme) - 1;
}
