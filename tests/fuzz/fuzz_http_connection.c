// SPDX-License-Identifier: Apache-2.0
// A whole connection to a server: requests one behind another, of calls, pages and long-lived
// connections, and then the end. It is answered alike whether its bytes come at once or in pieces.
#include "fuzz.h"

#include "base/error.h"
#include "base/loop.h"
#include "call/request.h"
#include "http/head.h"
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BODY_MAX = 8192, STRANGER_MAX = 5000, PIECES_MAX = 24, DEADLINE_MS = 3600000 };

static struct {
    struct loop *loop;
    struct server *server;
    sem_t passed; // by barrier()
    int port;
} fixture;

static void post(loop_fn *fn, void *arg)
{
    int r = loop_post(fixture.loop, fn, arg);
    assert(r == 0);
}

static void echo_argument(void *arg, const char *name, const char *text)
{
    json_text(arg, name);
    json_text(arg, text);
}

static void echo(void *arg)
{
    struct request *request = arg;
    struct json_writer *writer = request_reply_open(request);
    json_key_string(writer, "method", request_method(request));
    json_key_string(writer, "token", request_token(request));
    json_key(writer, "args");
    json_open_array(writer);
    request_args_each(request, echo_argument, writer);
    json_close_array(writer);
    request_reply_close(request);
}

static void on_read(void *arg, int r)
{
    struct request *request = arg;
    if (r < 0)
        request_reply_unread(request, r);
    else if (strcmp(request_method(request), "late") == 0)
        post(echo, request);
    else
        echo(request);
}

static void on_call(void *arg, struct request *request)
{
    (void)arg;
    request_read(request, on_read, request);
}

static void admit(void *arg)
{
    request_admit(arg, "U");
}

static void on_admit(void *arg, struct request *request)
{
    (void)arg;
    if (strcmp(request_token(request), "no") == 0)
        request_reply_error(request, -ERROR_INVALID_AUTH);
    else if (strcmp(request_token(request), "later") == 0)
        post(admit, request);
    else
        admit(request);
}

// A new owner: sends back all that it finds unread.
static void *owner_run(void *arg)
{
    char piece[4096];
    int fd = (int)(intptr_t)arg;
    ssize_t length;
    fcntl(fd, F_SETFL, 0); // blocking
    while ((length = recv(fd, piece, sizeof piece, 0)) > 0)
        (void)!send(fd, piece, (size_t)length, MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static void on_takeover(void *arg, int fd, const struct http_head *head)
{
    char text[64];
    pthread_t thread;
    (void)arg;
    int length = snprintf(text, sizeof text, "TAKEN %.40s\n", head->target);
    (void)!send(fd, text, (size_t)length, MSG_NOSIGNAL);
    int r = pthread_create(&thread, NULL, owner_run, (void *)(intptr_t)fd);
    assert(r == 0);
    pthread_detach(thread);
}

static int page(void *arg, const char *path, struct buffer *body, const char **ret_type)
{
    (void)arg, (void)path;
    *ret_type = "text/plain";
    buffer_append_text(body, "fine");
    return 200;
}

static void *server_run(void *arg)
{
    loop_run(arg);
    return NULL;
}

static void fixture_start(void)
{
    const struct server_options options = {
        .settings = {.listen = "127.0.0.1:0",
                     .cors_origins = "https://a.example",
                     .connections_max = 100,
                     .body_max_bytes = BODY_MAX,
                     .stranger_body_max_bytes = STRANGER_MAX,
                     .json_values_max = 100,
                     .bodies_bytes = 1 << 20,
                     .user_bodies_bytes = 1 << 20,
                     .strangers_bodies_bytes = 1 << 20,
                     .reply_max_bytes = 1 << 20,
                     .replies_bytes = 1 << 22,
                     .user_replies_bytes = 1 << 22,
                     .header_timeout_ms = DEADLINE_MS,
                     .body_timeout_ms = DEADLINE_MS,
                     .idle_timeout_ms = DEADLINE_MS},
        .on_call = on_call,
        .on_admit = on_admit,
        .on_takeover = on_takeover,
    };
    pthread_t thread;
    int r = loop_new(&fixture.loop);
    assert(r == 0);
    r = server_new(fixture.loop, &options, &fixture.server);
    assert(r == 0);
    r = server_page_add(fixture.server, "/page", page, NULL);
    assert(r == 0);
    fixture.port = server_port(fixture.server);
    sem_init(&fixture.passed, 0, 0);
    r = pthread_create(&thread, NULL, server_run, fixture.loop);
    assert(r == 0);
}

static void pass(void *arg)
{
    sem_post(arg);
}

// Waits until the server has had a turn with what was sent.
static void barrier(void)
{
    post(pass, &fixture.passed);
    while (sem_wait(&fixture.passed) != 0)
        continue;
}

static int client_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)fixture.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int r = connect(fd, (struct sockaddr *)&address, sizeof address);
    assert(r == 0);
    return fd;
}

static void read_all(int fd, struct buffer *text)
{
    char piece[4096];
    ssize_t length;
    // libFuzzer's alarms interrupt.
    while ((length = TEMP_FAILURE_RETRY(recv(fd, piece, sizeof piece, 0))) > 0)
        buffer_append(text, piece, (size_t)length);
}

// Sends what is left, in pieces if `seed` is not 0. A server that has closed takes no more.
static void client_send(int fd, const char *data, size_t size, unsigned seed)
{
    for (int i = 0; seed != 0 && i < PIECES_MAX && size > 0; i++) {
        seed = seed * 1103515245 + 12345;
        size_t wanted = 1 + (seed >> 16) % ((seed >> 8) % 4 == 0 ? size : 40);
        size_t length = wanted < size ? wanted : size;
        if (TEMP_FAILURE_RETRY(send(fd, data, length, MSG_NOSIGNAL)) < 0)
            return;
        barrier();
        data += length;
        size -= length;
    }
    if (size > 0)
        (void)!TEMP_FAILURE_RETRY(send(fd, data, size, MSG_NOSIGNAL));
}

// Sends the bytes on a connection of their own, and the end. Returns all that was answered.
static struct buffer ask(const char *data, size_t size, unsigned seed)
{
    struct buffer answer = BUFFER(1 << 24);
    int fd = client_open();
    client_send(fd, data, size, seed);
    shutdown(fd, SHUT_WR);
    read_all(fd, &answer);
    close(fd);
    return answer;
}

static void line_cut(char *text, size_t *length, const char *start)
{
    for (char *line; (line = memmem(text, *length, start, strlen(start)));) {
        const char *end = memmem(line + 2, *length - (size_t)(line + 2 - text), "\r\n", 2);
        if (!end) // in bytes that a new owner sent back
            end = text + *length;
        memmove(line, end, *length - (size_t)(end - text));
        *length -= (size_t)(end - line);
    }
}

// Cuts out what may differ: dates, ids, and interim replies, which depend on whether the body is
// there.
static void answer_level(struct buffer *answer)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t size = sizeof interim - 1;
    for (char *at; (at = memmem(answer->data, answer->length, interim, size));) {
        memmove(at, at + size, answer->length - (size_t)(at + size - answer->data));
        answer->length -= size;
    }
    line_cut(answer->data, &answer->length, "\r\nX-Request-Id: ");
    line_cut(answer->data, &answer->length, "\r\nDate: ");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fixture.loop)
        fixture_start();
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 2;
    struct buffer whole = ask(text, size - 2, 0);
    struct buffer pieces = ask(text, size - 2, (unsigned)(data[0] << 8 | data[1]) + 1);
    buffer_append_byte(&whole, '\n'); // neither is empty
    buffer_append_byte(&pieces, '\n');
    assert(!buffer_failed(&whole) && !buffer_failed(&pieces));
    answer_level(&whole);
    answer_level(&pieces);
    assert(whole.length == pieces.length);
    assert(memcmp(whole.data, pieces.data, whole.length) == 0);
    buffer_done(&whole);
    buffer_done(&pieces);
    return 0;
}
