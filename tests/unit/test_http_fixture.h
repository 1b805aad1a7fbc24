// SPDX-License-Identifier: Apache-2.0
// A server on a thread of its own whose methods are made for tests, and a client that sends bytes
// as they are.
//
//   now    replies at once
//   late   replies `ms` later, with `n` bytes if asked to
//   echo   replies with what it was asked
//   big    replies with `n` bytes
//   fail   replies with an error
#pragma once

#include "base/error.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "http/head.h"
#include "http/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST "Host: h\r\n"
#define GET "GET /api/now HTTP/1.1\r\n" HOST
#define POST "POST /api/now HTTP/1.1\r\n" HOST
#define CHUNKED "Transfer-Encoding: chunked\r\n"

enum {
    FIXTURE_BODY_MAX = 100000,
    FIXTURE_STRANGER_MAX = 20000,
    FIXTURE_USER_BODIES = 120000,
    FIXTURE_STRANGERS_BODIES = 110000,
    FIXTURE_BODIES = 300000,
    FIXTURE_REPLY_MAX = 30000000,
    FIXTURE_USER_REPLIES = 42000000, // what is left beside one of these the kernel does not take
    FIXTURE_REPLIES = 72000000,
    FIXTURE_VALUES_MAX = 1000,
    FIXTURE_CONNECTIONS_MAX = 20,
    FIXTURE_ADMIT_MS = 50
};
// A client that is slow, as on a busy machine, is cut off by tests of deadlines alone.
enum { FIXTURE_DEADLINE_MS = 20000, FIXTURE_SOON_MS = 800 };

struct late {
    struct request *request;
    struct loop_timer *timer;
};

static struct {
    struct loop *loop;
    struct server *server;
    struct loop_timer *stop_timer;
    pthread_t thread;
    int port;
    struct late *late; // the last call of that method
    atomic_int calls_begun;
    atomic_int admissions; // asked for
    atomic_bool quiesced;
} fixture;

static void reply_plainly(struct request *request)
{
    json_key_string(request_reply_open(request), "ts", "1717200000.123456");
    request_reply_close(request);
}

static void reply_with_bytes(struct request *request)
{
    struct json_writer *writer = request_reply_open(request);
    size_t length = strtoul(request_arg(request, "n"), NULL, 10);
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    json_key_string(writer, "text", text);
    free(text);
    request_reply_close(request);
}

static void late_now(void *arg)
{
    struct late *late = arg;
    if (request_arg(late->request, "n"))
        reply_with_bytes(late->request);
    else
        reply_plainly(late->request);
    loop_timer_free(late->timer);
    free(late);
}

static void late_begin(struct request *request)
{
    struct late *late = malloc(sizeof *late);
    const char *ms = request_arg(request, "ms");
    assert_non_null(late);
    late->request = request;
    fixture.late = late;
    assert_int_equal(loop_timer_new(fixture.loop, late_now, late, &late->timer), 0);
    loop_timer_set(late->timer, ms ? (int)strtol(ms, NULL, 10) : 1);
}

static void echo_one(void *arg, const char *name, const char *text)
{
    json_key_string(arg, name, text);
}

static void echo(struct request *request)
{
    struct json_writer *writer = request_reply_open(request);
    json_key_string(writer, "token", request_token(request));
    json_key_string(writer, "host", request_host(request));
    json_key_string(writer, "key", request_idempotency_key(request));
    json_key(writer, "args");
    json_open_object(writer);
    request_args_each(request, echo_one, writer);
    json_close_object(writer);
    request_reply_close(request);
}

static void on_read(void *arg, int r)
{
    struct request *request = arg;
    const char *method = request_method(request);
    if (r < 0) {
        request_reply_unread(request, r);
        return;
    }
    fixture.calls_begun++;
    if (strcmp(method, "now") == 0)
        reply_plainly(request);
    else if (strcmp(method, "late") == 0)
        late_begin(request);
    else if (strcmp(method, "echo") == 0)
        echo(request);
    else if (strcmp(method, "big") == 0)
        reply_with_bytes(request);
    else if (strcmp(method, "fail") == 0)
        request_reply_error_message(request, -ERROR_INVALID_AUTH, "no");
    else
        request_reply_error(request, -ERROR_UNKNOWN_METHOD);
}

static void on_call(void *arg, struct request *request)
{
    (void)arg;
    struct actor *actor = request_actor(request); // whoever has a token is called by it
    snprintf(actor->user_id, sizeof actor->user_id, "%s", request_token(request));
    int r = request_charge(request, request_token(request));
    if (r < 0)
        request_reply_error(request, r);
    else
        request_read(request, on_read, request);
}

// Bodies of who has the token "nobody" are not let in; those of "later" are a while later.
static void admit_now(void *arg)
{
    struct late *late = arg;
    request_admit(late->request, "LATER");
    loop_timer_free(late->timer);
    free(late);
}

static void on_admit(void *arg, struct request *request)
{
    (void)arg;
    fixture.admissions++;
    if (strcmp(request_token(request), "nobody") == 0) {
        request_reply_error(request, -ERROR_INVALID_AUTH);
    } else if (strcmp(request_token(request), "later") == 0) {
        struct late *late = malloc(sizeof *late);
        assert_non_null(late);
        late->request = request;
        assert_int_equal(loop_timer_new(fixture.loop, admit_now, late, &late->timer), 0);
        loop_timer_set(late->timer, FIXTURE_ADMIT_MS);
    } else {
        request_admit(request, request_token(request));
    }
}

// Answers with what the head says that was handed over, and with what came behind it.
static void on_takeover(void *arg, int fd, const struct http_head *head)
{
    char answer[1024], rest[64];
    (void)arg;
    ssize_t more = recv(fd, rest, sizeof rest, 0);
    int length =
        snprintf(answer, sizeof answer, "TAKEN %s %s %s, upgrade %s %d, rest '%.*s'", head->verb,
                 head->target, head->version, head->upgrade ? head->upgrade : "",
                 head->wants_upgrade, more > 0 ? (int)more : 0, rest);
    assert_int_equal(send(fd, answer, (size_t)length, MSG_NOSIGNAL), length);
    close(fd);
}

static int health_page(void *arg, const char *path, struct buffer *body, const char **ret_type)
{
    (void)arg, (void)path;
    *ret_type = "text/plain";
    buffer_append_text(body, "fine");
    return 200;
}

static void *fixture_run(void *arg)
{
    loop_run(arg);
    return NULL;
}

static int fixture_start_with(int deadline_ms)
{
    struct server_options options = {
        .settings =
            {
                .listen = "127.0.0.1:0",
                .header_timeout_ms = deadline_ms,
                .body_timeout_ms = deadline_ms,
                .idle_timeout_ms = deadline_ms,
                .body_max_bytes = FIXTURE_BODY_MAX,
                .stranger_body_max_bytes = FIXTURE_STRANGER_MAX,
                .bodies_bytes = FIXTURE_BODIES,
                .user_bodies_bytes = FIXTURE_USER_BODIES,
                .strangers_bodies_bytes = FIXTURE_STRANGERS_BODIES,
                .json_values_max = FIXTURE_VALUES_MAX,
                .replies_bytes = FIXTURE_REPLIES,
                .user_replies_bytes = FIXTURE_USER_REPLIES,
                .reply_max_bytes = FIXTURE_REPLY_MAX,
                .cors_origins = "",
                .connections_max = FIXTURE_CONNECTIONS_MAX,
            },
        .on_call = on_call,
        .on_admit = on_admit,
        .on_takeover = on_takeover,
    };
    fixture.calls_begun = 0;
    fixture.admissions = 0;
    fixture.quiesced = false;
    assert_int_equal(loop_new(&fixture.loop), 0);
    assert_int_equal(server_new(fixture.loop, &options, &fixture.server), 0);
    assert_int_equal(server_page_add(fixture.server, "/healthz", health_page, NULL), 0);
    fixture.port = server_port(fixture.server);
    assert_int_equal(pthread_create(&fixture.thread, NULL, fixture_run, fixture.loop), 0);
    return 0;
}

static int fixture_start(void **state)
{
    (void)state;
    return fixture_start_with(FIXTURE_DEADLINE_MS);
}

static void stop_when_idle(void *arg)
{
    (void)arg;
    if (server_calls(fixture.server) == 0)
        loop_stop(fixture.loop);
    else
        loop_timer_set(fixture.stop_timer, 5);
}

// What an application does on SIGTERM.
static void fixture_quiesce(void *arg)
{
    (void)arg;
    server_quiesce(fixture.server);
    fixture.quiesced = true;
    assert_int_equal(loop_timer_new(fixture.loop, stop_when_idle, NULL, &fixture.stop_timer), 0);
    stop_when_idle(NULL);
}

static void fixture_join(void)
{
    pthread_join(fixture.thread, NULL);
    loop_timer_free(TAKE(fixture.stop_timer));
    server_free(fixture.server);
    loop_free(fixture.loop);
}

static int fixture_stop(void **state)
{
    (void)state;
    assert_int_equal(loop_post(fixture.loop, fixture_quiesce, NULL), 0);
    fixture_join();
    return 0;
}

static int client_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)fixture.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void client_send(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return; // the server has closed: what it said is what counts
        data += sent;
        length -= (size_t)sent;
    }
}

// Reads until the server closes. The length; -1 when it did not in 10 s.
static ssize_t client_read_all(int fd, char *text, size_t size)
{
    size_t length = 0;
    for (;;) {
        ssize_t got = recv(fd, text + length, size - 1 - length, 0);
        if (got < 0 && errno == EAGAIN)
            return -1;
        if (got <= 0 || length + (size_t)got == size - 1) {
            length += got > 0 ? (size_t)got : 0;
            text[length] = '\0';
            return (ssize_t)length;
        }
        length += (size_t)got;
    }
}

// Reads until `text` has been seen, which is where the caller's waiting ends.
static void client_read_until(int fd, const char *wanted, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    while (!strstr(text, wanted)) {
        ssize_t got = recv(fd, text + length, size - 1 - length, 0);
        if (got <= 0)
            fail_msg("no %s in: %s", wanted, text);
        length += (size_t)got;
        text[length] = '\0';
    }
}

static void client_say(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

// Sends bytes on a new connection; the answer is all that comes until the server closes.
static char *ask_bytes(const char *data, size_t length)
{
    static char answer[65536];
    int fd = client_open();
    client_send(fd, data, length);
    if (client_read_all(fd, answer, sizeof answer) < 0)
        fail_msg("the connection stays open after: %s", answer);
    close(fd);
    return answer;
}

static char *ask(const char *text)
{
    return ask_bytes(text, strlen(text));
}

static inline int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" in: %s", part, text);
}
