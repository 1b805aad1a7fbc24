// SPDX-License-Identifier: Apache-2.0
// What a durable post costs at the least with Tidings' libraries: one thread that parses the body
// with jansson, gathers, inserts in one statement a round, and answers by hand. No token, no check.
// With --redis the statement moves the channels' heads as well, and a second thread counts each
// post in Redis: a post's whole way, at its barest.
#include "batch.h"
#include "counter.h"
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#define BATCH_MAX 1000
#define BODY_MAX 1024
#define REPLY_MAX (BODY_MAX + 512)
#define CONNECTION_BYTES                                                                           \
    4096 // libmicrohttpd clears so much after each request: its own 32 KB cost a microsecond
#define TICK_MS 100 // libmicrohttpd looks at its listening socket again only when it is run

struct channel {
    char *id; // key
    int64_t seq;
    UT_hash_handle hh;
};

struct request {
    struct MHD_Connection *connection;
    struct request *next; // in the queue of what waits for a batch, or of what is spare
    struct channel *channel;
    json_t *json;
    struct batch_row row;
    size_t body_len;
    size_t reply_len; // > 0: stored
    char body[BODY_MAX];
    char reply[REPLY_MAX];
};

struct queue {
    struct request *first;
    struct request **last;
    size_t count;
};

struct floor_server {
    struct MHD_Daemon *daemon;
    struct batch_writer *writer;
    struct counter *counter; // NULL: nothing counts
    struct channel *channels;
    struct queue waiting;
    struct request
        *spare; // those of answered posts, the last used first: its memory is still in the cache
    struct request *under_way[BATCH_MAX];
    size_t under_way_count;
    int64_t last_ts;
    int epoll;
    bool watches_writes;
};

static void queue_init(struct queue *queue)
{
    *queue = (struct queue){.last = &queue->first};
}

static void queue_push(struct queue *queue, struct request *request)
{
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
    queue->count++;
}

static struct request *queue_pop(struct queue *queue)
{
    struct request *request = queue->first;

    queue->first = request->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->count--;
    return request;
}

static int64_t next_ts(struct floor_server *server)
{
    struct timespec now;
    int64_t us;

    clock_gettime(CLOCK_REALTIME, &now);
    us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    server->last_ts = us > server->last_ts ? us : server->last_ts + 1;
    return server->last_ts;
}

static struct channel *channel_get(struct floor_server *server, const char *id)
{
    struct channel *channel;

    HASH_FIND_STR(server->channels, id, channel);
    if (!channel) {
        channel = tool_alloc(1, sizeof(*channel));
        channel->id = strdup(id);
        HASH_ADD_KEYPTR(hh, server->channels, channel->id, strlen(channel->id), channel);
        batch_writer_add_channel(server->writer, id);
    }
    return channel;
}

static enum MHD_Result answer(struct request *request)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(request->reply_len, request->reply, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result;

    MHD_add_response_header(response, "Content-Type", "application/json; charset=utf-8");
    result = MHD_queue_response(request->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static void parse(struct floor_server *server, struct request *request)
{
    request->json = json_loadb(request->body, request->body_len, 0, NULL);
    request->row.channel = json_string_value(json_object_get(request->json, "channel"));
    request->row.body = json_string_value(json_object_get(request->json, "text"));
    if (!request->row.channel || !request->row.body)
        tool_die("no post: %.*s", (int)request->body_len, request->body);
    request->row.user = "U0000000000";
    request->row.ts = next_ts(server);
    request->channel = channel_get(server, request->row.channel);
    request->row.seq = ++request->channel->seq;
}

static struct request *request_take(struct floor_server *server, struct MHD_Connection *connection)
{
    struct request *request = server->spare;

    if (request)
        server->spare = request->next;
    else
        request = tool_alloc(1, sizeof(*request));
    request->connection = connection;
    request->json = NULL;
    request->body_len = request->reply_len = 0;
    return request;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **state)
{
    struct floor_server *server = cls;
    struct request *request = *state;

    (void)url;
    (void)method;
    (void)version;
    if (!request) {
        *state = request_take(server, connection);
        return MHD_YES;
    }
    if (*data_len > 0) {
        if (*data_len > BODY_MAX - request->body_len)
            return MHD_NO;
        memcpy(request->body + request->body_len, data, *data_len);
        request->body_len += *data_len;
        *data_len = 0;
        return MHD_YES;
    }
    if (request->reply_len > 0)
        return answer(request);
    parse(server, request);
    queue_push(&server->waiting, request);
    MHD_suspend_connection(connection);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct floor_server *server = cls;
    struct request *request = *state;

    (void)connection;
    (void)code;
    if (!request)
        return;
    json_decref(request->json);
    request->next = server->spare;
    server->spare = request;
}

static void send_batch(struct floor_server *server)
{
    struct batch_row rows[BATCH_MAX];
    size_t count = 0;

    while (server->waiting.count > 0 && count < BATCH_MAX) {
        struct request *request = queue_pop(&server->waiting);

        request->row.is_head = request->row.seq == request->channel->seq;
        rows[count] = request->row;
        server->under_way[count++] = request;
    }
    server->under_way_count = count;
    batch_writer_send(server->writer, rows, count);
}

// Quotes and backslashes only: the load program sends nothing else that would need an escape.
static char *write_escaped(char *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
        *to++ = *text;
    }
    return to;
}

static char *write_plain(char *to, const char *text)
{
    size_t len = strlen(text);

    memcpy(to, text, len);
    return to + len;
}

static void write_reply(struct request *request)
{
    char *to = request->reply;
    char ts[32];

    snprintf(ts, sizeof(ts), "%lld.%06lld", (long long)(request->row.ts / 1000000),
             (long long)(request->row.ts % 1000000));
    to = write_plain(to, "{\"ok\":true,\"channel\":\"");
    to = write_escaped(to, request->row.channel);
    to = write_plain(write_plain(to, "\",\"ts\":\""), ts);
    to = write_plain(to, "\",\"message\":{\"type\":\"message\",\"text\":\"");
    to = write_escaped(to, request->row.body);
    to = write_plain(write_plain(to, "\",\"ts\":\""), ts);
    to = write_plain(to, "\"}}");
    request->reply_len = (size_t)(to - request->reply);
}

static void answer_batch(struct floor_server *server)
{
    for (size_t i = 0; i < server->under_way_count; i++) {
        if (server->counter)
            counter_tell(server->counter, server->under_way[i]->channel->id);
        write_reply(server->under_way[i]);
        MHD_resume_connection(server->under_way[i]->connection);
    }
    if (server->counter)
        counter_send(server->counter);
    server->under_way_count = 0;
}

static void watch(struct floor_server *server, int fd, int operation, bool writes)
{
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0u), .data.fd = fd};

    if (epoll_ctl(server->epoll, operation, fd, &event) < 0)
        tool_die("epoll_ctl: %s", strerror(errno));
}

static void watch_writer(struct floor_server *server)
{
    bool writes;
    int fd = batch_writer_socket(server->writer, &writes);

    if (writes != server->watches_writes)
        watch(server, fd, EPOLL_CTL_MOD, writes);
    server->watches_writes = writes;
}

// 0 while libmicrohttpd has connections left to turn to: those that were resumed, for one.
static int wait_ms(struct floor_server *server)
{
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES && ms < TICK_MS)
        return (int)ms;
    return TICK_MS;
}

static void run_once(struct floor_server *server)
{
    struct epoll_event events[2];
    bool writes;
    int writer_fd = batch_writer_socket(server->writer, &writes);
    int count = epoll_wait(server->epoll, events, 2, wait_ms(server));

    for (int i = 0; i < count; i++)
        if (events[i].data.fd == writer_fd && batch_writer_step(server->writer))
            answer_batch(server);
    MHD_run(server->daemon);
    if (!batch_writer_is_busy(server->writer) && server->waiting.count > 0)
        send_batch(server);
    watch_writer(server);
}

static void start(struct floor_server *server, const struct tool_args *args)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned redis_port = tool_args_number(args, "redis", 0, 0, UINT16_MAX);
    bool writes;

    address.sin_port = htons((uint16_t)tool_args_number(args, "port", 9000, 1, UINT16_MAX));
    queue_init(&server->waiting);
    server->writer = batch_writer_new(tool_args_text(args, "database", ""), redis_port != 0);
    if (redis_port != 0)
        server->counter = counter_new(redis_port);
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
        server, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT, 2000u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_END);
    if (!server->daemon)
        tool_die("cannot listen: %s", strerror(errno));
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(server, batch_writer_socket(server->writer, &writes), EPOLL_CTL_ADD, false);
    watch(server, MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
          EPOLL_CTL_ADD, false);
}

static void free_memory(struct floor_server *server)
{
    struct channel *channel, *next;
    struct request *request;

    HASH_ITER(hh, server->channels, channel, next)
    {
        HASH_DEL(server->channels, channel);
        free(channel->id);
        free(channel);
    }
    while ((request = server->spare)) {
        server->spare = request->next;
        free(request);
    }
}

void floor_posts(const struct tool_args *args)
{
    struct floor_server *server = tool_alloc(1, sizeof(*server));

    start(server, args);
    floor_say_ready();
    while (!floor_stopped)
        run_once(server);
    answer_batch(server);
    while (server->waiting.count > 0)
        MHD_resume_connection(queue_pop(&server->waiting)->connection);
    MHD_stop_daemon(server->daemon);
    batch_writer_free(server->writer);
    if (server->counter)
        counter_free(server->counter);
    free_memory(server);
    close(server->epoll);
    free(server);
}
