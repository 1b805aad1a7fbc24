// SPDX-License-Identifier: Apache-2.0
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENTS_MAX 64
#define WATCHES_MAX 4

static struct {
    int epoll;
    int listener;
    void (*watches[WATCHES_MAX])(void);
    uint64_t watch_count;
    void (*on_request)(struct conn *);
} server = {.epoll = -1};

static void epoll_add(int fd, epoll_data_t data)
{
    struct epoll_event event = {.events = EPOLLIN, .data = data};

    if (server.epoll < 0)
        server.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        tool_die("epoll_ctl: %s", strerror(errno));
}

// Places of watches are smaller than any address of a connection.
void server_watch(int fd, void (*on_ready)(void))
{
    server.watches[server.watch_count] = on_ready;
    epoll_add(fd, (epoll_data_t){.u64 = server.watch_count++});
}

static void on_listener(void)
{
    struct conn *conn = tool_alloc(1, sizeof(*conn));

    conn->fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC);
    if (conn->fd < 0)
        tool_die("accept: %s", strerror(errno));
    epoll_add(conn->fd, (epoll_data_t){.ptr = conn});
}

// Connections are few and the program lives for seconds: what is gone is not freed, since a post
// or a socket may still name it.
static void conn_close(struct conn *conn)
{
    close(conn->fd);
    conn->fd = -1;
}

// What follows `name` in the head, up to the next of `ends`; "" where there is none.
static const char *head_take(char *head, const char *name, char ends)
{
    char *value = strstr(head, name);

    if (!value)
        return "";
    value += strlen(name);
    *strchrnul(value, ends) = '\0';
    return value;
}

static size_t body_length(const char *head)
{
    static const char name[] = "Content-Length: ";
    const char *value = strstr(head, name);

    return value ? strtoul(value + sizeof(name) - 1, NULL, 10) : 0;
}

// Takes a request once it is whole.
static void conn_parse(struct conn *conn)
{
    char *end;

    conn->bytes[conn->len] = '\0';
    end = strstr(conn->bytes, "\r\n\r\n");
    if (!end || conn->len < (size_t)(end + 4 - conn->bytes) + body_length(conn->bytes))
        return;
    *end = '\0';
    conn->body = end + 4;
    conn->token = head_take(conn->bytes, "Authorization: Bearer ", '\r');
    conn->path = head_take(conn->bytes, " ", ' ');
    conn->json = json_loads(conn->body, 0, NULL);
    conn->len = 0;
    conn->waits = true;
    server.on_request(conn);
}

static void conn_read(struct conn *conn)
{
    ssize_t n = recv(conn->fd, conn->bytes + conn->len, FLOOR_REQUEST_MAX - conn->len, 0);

    if (n <= 0) {
        conn_close(conn);
        return;
    }
    if (conn->waits)
        tool_die("a second request on a connection, or a message of a socket");
    conn->len += (size_t)n;
    conn_parse(conn);
}

void conn_write(struct conn *conn, const char *bytes, size_t len)
{
    while (conn->fd >= 0 && len > 0) {
        ssize_t n = send(conn->fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return; // it is closed when it is read next
        bytes += n;
        len -= (size_t)n;
    }
}

void conn_reply(struct conn *conn, const char *json, size_t len)
{
    char head[128];
    int head_len = snprintf(head, sizeof(head),
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n",
                            len);
    struct iovec parts[] = {{head, (size_t)head_len}, {(void *)(uintptr_t)json, len}};
    ssize_t n = conn->fd < 0 ? 0 : writev(conn->fd, parts, 2);

    json_decref(conn->json);
    conn->json = NULL;
    conn->waits = false;
    if (n >= head_len)
        conn_write(conn, json + (n - head_len), len - (size_t)(n - head_len));
}

const char *conn_text(const struct conn *conn, const char *key)
{
    return json_string_value(json_object_get(conn->json, key));
}

int server_listen(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); // of all that it accepts
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0)
        tool_die("cannot listen at %u: %s", port, strerror(errno));
    return fd;
}

void server_say_ready(void)
{
    puts("ready");
    fflush(stdout);
}

void server_run(unsigned port, void (*on_request)(struct conn *), void (*on_turn)(void))
{
    struct epoll_event events[EVENTS_MAX];

    server.on_request = on_request;
    server.listener = server_listen(port);
    server_watch(server.listener, on_listener);
    server_say_ready();
    for (;;) {
        int count = epoll_wait(server.epoll, events, EVENTS_MAX, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 < WATCHES_MAX)
                server.watches[events[i].data.u64]();
            else
                conn_read(events[i].data.ptr);
        }
        if (on_turn)
            on_turn();
    }
}

static void find_add(char *key, void *data)
{
    if (!hsearch((ENTRY){.key = key, .data = data}, ENTER))
        tool_die("out of memory");
}

struct input *floor_input(const struct tool_args *args, const char *group)
{
    struct input *input = tool_alloc(1, sizeof(*input));
    const char *path = tool_args_text(args, "data", NULL);

    if (!path)
        tool_die("--data names the file of the set-up");
    input_read(input, path, group);
    hcreate(2 * (input->user_count + input->channel_count));
    for (size_t i = 0; i < input->user_count; i++)
        find_add(input->users[i].token, &input->users[i]);
    for (size_t i = 0; i < input->channel_count; i++)
        find_add(input->channels[i].id, &input->channels[i]);
    return input;
}

void *floor_find(const char *token_or_id)
{
    ENTRY *found = hsearch((ENTRY){.key = (char *)(uintptr_t)token_or_id}, FIND);

    if (!found)
        tool_die("not in the set-up: %s", token_or_id);
    return found->data;
}

void floor_expect(PGconn *pg, bool fine)
{
    if (!fine)
        tool_die("postgres: %s", PQerrorMessage(pg));
}

PGconn *floor_postgres(const struct tool_args *args, const char *sql)
{
    PGconn *pg = PQconnectdb(tool_args_text(args, "database", ""));
    PGresult *result = PQexec(pg, sql);

    floor_expect(pg, PQresultStatus(result) == PGRES_COMMAND_OK);
    PQclear(result);
    return pg;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const struct tool_args *);
        const char *known; // its arguments
    } modes[] = {{"posts", floor_posts, "port database redis data"},
                 {"reads", floor_reads, "port database data"},
                 {"sockets", floor_sockets, "port sockets frame-bytes"}};
    struct tool_args args = {.count = argc - 2, .values = argv + 2};

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; argc >= 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        tool_args_check(&args, modes[i].known);
        modes[i].run(&args);
    }
    puts("usage: tidings-floor posts|reads|sockets [--name value]...");
    return 2;
}
