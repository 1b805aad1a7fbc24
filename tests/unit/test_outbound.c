// SPDX-License-Identifier: Apache-2.0
// What the sender of requests refuses, cuts and never does. The server is this test: it answers a
// request when it is told to.
#include "outbound/outbound.h"

#include "base/error.h"
#include "base/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 10000, MANY = 100, BYTES_MANY = 1 << 20, BODY_MAX = 100000, ANSWER_MAX = 10 };

static struct {
    struct outbound *outbound;
    int listener;
    char url[64];
    char request[4096]; // the last that came
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int answers;
    struct outbound_answer last; // without what is valid only during the call
    char body[ANSWER_MAX];
    char header[64];
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_answer(void *arg, const struct outbound_answer *answer)
{
    const char *header = outbound_answer_header(answer, "X-Test");

    (void)arg;
    pthread_mutex_lock(&world.lock);
    world.answers++;
    world.last = *answer;
    if (answer->length > 0)
        memcpy(world.body, answer->body, answer->length);
    snprintf(world.header, sizeof world.header, "%s", header ? header : "");
    pthread_cond_signal(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static void expect_answers(int count)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&world.lock);
    while (world.answers < count &&
           pthread_cond_clockwait(&world.changed, &world.lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    assert_int_equal(world.answers, count);
    pthread_mutex_unlock(&world.lock);
}

static void begin(int64_t requests_max, int64_t bytes_max)
{
    const struct outbound_options options = {.requests_max = requests_max, .bytes_max = bytes_max};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    world.answers = 0;
    world.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(world.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(world.listener, 16), 0);
    assert_int_equal(getsockname(world.listener, (struct sockaddr *)&address, &length), 0);
    snprintf(world.url, sizeof world.url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    assert_int_equal(outbound_start(&options, &world.outbound), 0);
}

static void end(void)
{
    outbound_stop(world.outbound);
    outbound_free(world.outbound);
    close(world.listener);
}

static struct outbound_request request_make(const char *method, size_t body_length)
{
    struct outbound_request request = OUTBOUND_REQUEST(BODY_MAX);

    request.method = method;
    request.url = world.url;
    request.answer_max = ANSWER_MAX;
    request.timeout_ms = WAIT_MS;
    request.private_allowed = true;
    for (size_t i = 0; i < body_length; i++)
        buffer_append_byte(&request.body, 'x');
    return request;
}

static int request_send(struct outbound_request *request)
{
    int64_t before = metric_value(METRIC_OUTBOUND_FULL);
    int r = outbound_send(world.outbound, request, on_answer, NULL);

    assert_int_equal(metric_value(METRIC_OUTBOUND_FULL), before + (r == -ERROR_BUSY));
    outbound_request_done(request);
    return r;
}

static int send_plain(size_t body_length)
{
    struct outbound_request request = request_make("POST", body_length);

    return request_send(&request);
}

// The connection on which the next request comes, once its head is there.
static int request_accept(void)
{
    struct pollfd ready = {.fd = world.listener, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    int fd = accept(world.listener, NULL, NULL);
    ssize_t length = recv(fd, world.request, sizeof world.request - 1, 0);
    assert_true(length > 0);
    world.request[length] = '\0';
    return fd;
}

static void answer(const char *head, const char *body)
{
    char text[1024];
    int fd = request_accept();
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", head,
                          strlen(body), body);

    assert_int_equal(send(fd, text, (size_t)length, 0), length);
    expect_answers(1);
    close(fd);
}

static void so_many_are_held(void **state)
{
    (void)state;
    begin(2, BYTES_MANY);
    assert_int_equal(send_plain(1), 0);
    assert_int_equal(send_plain(1), 0);
    assert_int_equal(send_plain(1), -ERROR_BUSY);
    answer("200 OK", "");
    assert_int_equal(send_plain(1), 0);
    assert_int_equal(send_plain(1), -ERROR_BUSY);
    end();
    assert_int_equal(world.answers, 3);
    assert_int_equal(world.last.failure, OUTBOUND_STOPPED);
    assert_int_equal(world.last.status, 0);
}

static void so_many_bytes_are_held(void **state)
{
    (void)state;
    begin(MANY, 1000);
    size_t room = 1000 - strlen(world.url);
    assert_int_equal(send_plain(room + 1), -ERROR_BUSY);
    assert_int_equal(send_plain(room), 0);
    assert_int_equal(send_plain(0), -ERROR_BUSY);
    answer("200 OK", "");
    assert_int_equal(send_plain(room), 0);
    end();
}

static void an_answer_is_cut(void **state)
{
    (void)state;
    for (int extra = 0; extra < 2; extra++) {
        begin(MANY, BYTES_MANY);
        assert_int_equal(send_plain(1), 0);
        answer("404 None\r\nRetry-After: 7\r\nx-test: yes", extra ? "0123456789+" : "0123456789");
        assert_int_equal(world.last.failure, OUTBOUND_ANSWERED);
        assert_int_equal(world.last.status, 404);
        assert_int_equal(world.last.length, ANSWER_MAX);
        assert_memory_equal(world.body, "0123456789", ANSWER_MAX);
        assert_int_equal(world.last.is_cut, extra);
        assert_int_equal(world.last.retry_after_s, 7);
        assert_string_equal(world.header, "yes");
        end();
    }
}

static void a_private_address_is_refused(void **state)
{
    struct pollfd ready;

    (void)state;
    begin(MANY, BYTES_MANY);
    ready = (struct pollfd){.fd = world.listener, .events = POLLIN};
    struct outbound_request request = request_make("GET", 0);
    request.private_allowed = false;
    assert_int_equal(request_send(&request), 0);
    expect_answers(1);
    assert_int_equal(world.last.failure, OUTBOUND_PRIVATE);
    assert_int_equal(poll(&ready, 1, 0), 0);
    end();
}

// A connection that another request opened, which may use it, is none for this one.
static void a_private_connection_is_refused(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    (void)state;
    begin(MANY, BYTES_MANY);
    assert_int_equal(send_plain(1), 0);
    int fd = request_accept();
    assert_int_equal(send(fd, text, sizeof text - 1, 0), sizeof text - 1);
    expect_answers(1);
    struct outbound_request request = request_make("POST", 1);
    request.private_allowed = false;
    assert_int_equal(request_send(&request), 0);
    expect_answers(2);
    assert_int_equal(world.last.failure, OUTBOUND_PRIVATE);
    close(fd);
    end();
}

static void a_redirect_is_an_answer(void **state)
{
    char head[128];

    (void)state;
    begin(MANY, BYTES_MANY);
    snprintf(head, sizeof head, "302 Found\r\nLocation: %s", world.url);
    struct outbound_request request = request_make("GET", 0);
    outbound_header(&request, "X-Number: %d", 7);
    assert_int_equal(request_send(&request), 0);
    answer(head, "");
    assert_int_equal(world.last.status, 302);
    assert_memory_equal(world.request, "GET / HTTP/1.1\r\n", strlen("GET / HTTP/1.1\r\n"));
    assert_non_null(strstr(world.request, "\r\nX-Number: 7\r\n"));
    assert_null(strstr(world.request, "Content-Length"));
    end();
}

static void a_silent_server_is_given_up(void **state)
{
    (void)state;
    begin(MANY, BYTES_MANY);
    struct outbound_request request = request_make("PUT", 3);
    request.timeout_ms = 50;
    assert_int_equal(request_send(&request), 0);
    expect_answers(1);
    assert_int_equal(world.last.failure, OUTBOUND_TIMEOUT);
    close(request_accept());
    assert_memory_equal(world.request, "PUT / HTTP/1.1\r\n", strlen("PUT / HTTP/1.1\r\n"));
    end();
}

// Header lines at the bound, beyond it, and two in one.
static void a_header_is_one_line(void **state)
{
    static char text[OUTBOUND_HEADER_MAX];

    (void)state;
    begin(MANY, BYTES_MANY);
    memset(text, 'x', sizeof text - 1);
    struct outbound_request longest = request_make("POST", 0);
    outbound_header(&longest, "a:%s", text + 1);
    assert_int_equal(request_send(&longest), 0);
    struct outbound_request too_long = request_make("POST", 0);
    outbound_header(&too_long, "a:%s", text);
    assert_int_equal(request_send(&too_long), -ERROR_MEMORY);
    struct outbound_request two = request_make("POST", 0);
    outbound_header(&two, "a: %s", "b\r\nc: d");
    assert_int_equal(request_send(&two), -ERROR_MEMORY);
    end();
    assert_int_equal(world.answers, 1);
}

static void an_origin_is_read(void **state)
{
    char origin[32];

    (void)state;
    assert_int_equal(outbound_origin_of("https://a.example:8443/b?c", origin, sizeof origin), 0);
    assert_string_equal(origin, "https://a.example:8443");
    assert_int_equal(outbound_origin_of("https://a.example:443/", origin, 18), 0);
    assert_string_equal(origin, "https://a.example");
    assert_int_equal(outbound_origin_of("https://a.example/", origin, 17),
                     -ERROR_INVALID_ARGUMENTS);
    assert_int_equal(outbound_origin_of("nothing", origin, sizeof origin),
                     -ERROR_INVALID_ARGUMENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_are_held),
        cmocka_unit_test(so_many_bytes_are_held),
        cmocka_unit_test(an_answer_is_cut),
        cmocka_unit_test(a_private_address_is_refused),
        cmocka_unit_test(a_private_connection_is_refused),
        cmocka_unit_test(a_redirect_is_an_answer),
        cmocka_unit_test(a_silent_server_is_given_up),
        cmocka_unit_test(a_header_is_one_line),
        cmocka_unit_test(an_origin_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
