// SPDX-License-Identifier: Apache-2.0
// Connections: how long they live, who gets them, and that none leaks.
#include "test_http_fixture.h"

#include <dirent.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <time.h>

#define KNOWN "Authorization: Bearer ann\r\n"

static int descriptors_open(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void client_read_twice(int fd, const char *wanted, char *text, size_t size)
{
    client_read_until(fd, wanted, text, size);
    if (count_of(text, wanted) < 2) {
        size_t length = strlen(text);
        client_read_until(fd, wanted, text + length, size - length);
    }
}

static void requests_before_a_half_close_are_answered(void **state)
{
    (void)state;
    static const char *const requests[] = {
        GET "\r\n",
        "GET /api/late?ms=50 HTTP/1.1\r\n" HOST "\r\n",
        "GET /api/late?ms=0 HTTP/1.1\r\n" HOST "\r\n",
        "POST /api/late HTTP/1.1\r\n" HOST
        "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nms=9",
    };
    char answer[4096];
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        // libmicrohttpd treats the connection that was idle longest differently.
        int idle = client_open();
        client_say(idle, GET "\r\n");
        client_read_until(idle, "\"ok\":true", answer, sizeof answer);
        int fd = client_open();
        client_say(fd, requests[i]);
        client_say(fd, requests[i]);
        shutdown(fd, SHUT_WR);
        client_read_twice(fd, "\"ok\":true", answer, sizeof answer);
        assert_int_equal(count_of(answer, "HTTP/1.1 200 OK\r\n"), 2);
        close(fd);
        close(idle);
    }
}

static void a_long_reply_after_a_half_close_is_whole(void **state)
{
    (void)state;
    static char answer[5000000 + 4096];
    int idle = client_open();
    client_say(idle, GET "\r\n");
    client_read_until(idle, "\"ok\":true", answer, sizeof answer);
    int fd = client_open();
    client_say(fd, "GET /api/late?n=5000000 HTTP/1.1\r\n" HOST "\r\n");
    shutdown(fd, SHUT_WR);
    assert_true(client_read_all(fd, answer, sizeof answer) > 5000000);
    const char *text = strstr(answer, "\"text\":\"");
    assert_non_null(text);
    assert_int_equal(strspn(text + 8, "x"), 5000000);
    assert_string_equal(text + 8 + 5000000, "\"}");
    close(fd);
    close(idle);
}

static void pipelined_requests_are_all_answered(void **state)
{
    (void)state;
    static char text[16384];
    for (int late = 0; late < 2; late++) {
        size_t length = 0;
        for (int i = 0; i < 100; i++)
            length +=
                (size_t)snprintf(text + length, sizeof text - length,
                                 "POST /api/%s HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\na=1",
                                 late ? "late" : "now");
        snprintf(text + length, sizeof text - length, GET "Connection: close\r\n\r\n");
        assert_int_equal(count_of(ask(text), "HTTP/1.1 200 OK\r\n"), 101);
    }
}

static void too_large(const char *head, int64_t before)
{
    static char body[2 * FIXTURE_BODY_MAX];
    static char answer[4096];
    memset(body, '1', sizeof body);
    int fd = client_open();
    client_say(fd, head);
    client_send(fd, body, sizeof body);
    assert_true(client_read_all(fd, answer, sizeof answer) > 0);
    close(fd);
    assert_has(answer, "\"error\":\"request_too_large\"");
    assert_has(answer, "\r\nConnection: close\r\n");
    assert_int_equal(count_of(answer, "HTTP/1.1 "), 1);
    assert_int_equal(metric_value(METRIC_HTTP_BODY_TOO_LARGE), before + 1);
}

static void a_client_can_read_that_its_body_is_too_large(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "POST /api/now HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n\r\n",
        "POST /api/now HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n",
        "POST /api/now HTTP/1.1\r\n" HOST KNOWN CHUNKED "\r\n30d40\r\n",
        "POST /api/now HTTP/1.1\r\n" HOST KNOWN "X-Tidings-Errors: http\r\n" CHUNKED
        "\r\n30d40\r\n",
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        too_large(heads[i], metric_value(METRIC_HTTP_BODY_TOO_LARGE));
    const char *answer = ask("POST /api/now HTTP/1.1\r\n" HOST "Content-Length: 200000\r\n"
                             "X-Tidings-Errors: http\r\nExpect: 100-continue\r\n\r\n");
    assert_has(answer, "HTTP/1.1 413 Content Too Large\r\n");
    assert_has_not(answer, "100 Continue");
    assert_int_equal(fixture.calls_begun, 0);
}

static void the_largest_body_is_taken(void **state)
{
    (void)state;
    static char request[FIXTURE_BODY_MAX + 256];
    int length = snprintf(request, sizeof request,
                          POST KNOWN "Connection: close\r\nContent-Type: text/plain\r\n"
                                     "Content-Length: %d\r\n\r\n",
                          FIXTURE_BODY_MAX);
    memset(request + length, 'a', FIXTURE_BODY_MAX);
    assert_has(ask_bytes(request, (size_t)length + FIXTURE_BODY_MAX), "\"ok\":true");
}

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Sends `head`, then a byte every 20 ms until the server closes. How long that took.
static int64_t drip(const char *head)
{
    int64_t start = now_ms();
    int fd = client_open();
    client_say(fd, head);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (poll(&ready, 1, 20) == 0 && now_ms() - start < 10000)
        client_send(fd, "a", 1);
    char answer[64];
    assert_true(recv(fd, answer, sizeof answer, 0) <= 0);
    close(fd);
    return now_ms() - start;
}

static void slow_senders_are_cut_off(void **state)
{
    (void)state;
    int64_t headers = metric_value(METRIC_HTTP_DEADLINE_HEADERS);
    int64_t body = metric_value(METRIC_HTTP_DEADLINE_BODY);
    assert_in_range(drip("GET /api/now?"), FIXTURE_SOON_MS - 50, 5000);
    assert_in_range(drip(GET "X: "), FIXTURE_SOON_MS - 50, 5000);
    assert_in_range(drip("GET /rtm/"), FIXTURE_SOON_MS - 50, 5000);
    assert_int_equal(metric_value(METRIC_HTTP_DEADLINE_HEADERS), headers + 3);
    assert_in_range(drip(POST KNOWN "Content-Length: 90000\r\n\r\n"), FIXTURE_SOON_MS - 50, 5000);
    assert_in_range(drip(POST KNOWN CHUNKED "\r\nffff\r\n"), FIXTURE_SOON_MS - 50, 5000);
    assert_int_equal(metric_value(METRIC_HTTP_DEADLINE_BODY), body + 2);
}

static void silence_is_ended_but_not_work(void **state)
{
    (void)state;
    char answer[4096];
    int fd = client_open();
    assert_int_equal(client_read_all(fd, answer, sizeof answer), 0);
    close(fd);
    // Three times the deadline: that of the server's own work is not the connection's.
    const char *reply = ask("GET /api/late?ms=2400 HTTP/1.1\r\n" HOST "\r\n");
    assert_has(reply, "\"ok\":true");
    // A second request's head is under the same clock.
    reply = ask(GET "\r\nGET /api/now HTTP/1.1\r\nX: ");
    assert_int_equal(count_of(reply, "HTTP/1.1 200 "), 1);
}

static void cut_off(const char *request)
{
    char answer[4096];
    int small = 4096;
    int fd = client_open();
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client_say(fd, request);
    client_read_until(fd, "\r\n\r\n", answer, sizeof answer);
    struct pollfd gone = {.fd = fd, .events = POLLRDHUP};
    assert_int_equal(poll(&gone, 1, 10000), 1);
    close(fd);
}

static void who_does_not_read_is_cut_off(void **state)
{
    (void)state;
    cut_off("GET /api/big?n=29000000 HTTP/1.1\r\n" HOST "\r\n");
    cut_off("POST /api/big?n=29000000 HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n\r\n");
}

static void sockets_are_handed_over(void **state)
{
    (void)state;
    assert_string_equal(ask("GET /rtm/abc HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n"),
                        "TAKEN GET /rtm/abc HTTP/1.1, upgrade websocket 0, rest ''");
    assert_string_equal(ask("GET /link/?ticket=a HTTP/1.1\r\n" HOST
                            "Connection: x , Upgrade\r\nConnection: y\r\n\r\nrest"),
                        "TAKEN GET /link/?ticket=a HTTP/1.1, upgrade  1, rest 'rest'");
    assert_has(ask("GET /events?ticket=x HTTP/1.0\r\n\r\n"), "TAKEN ");
    assert_has(ask("GET /events HTTP/1.1\r\n\r\n"), "no Host header");
    assert_has(ask("GET /rtm/abc HTTP/1.1\r\n" HOST "a b: c\r\n\r\n"), " 400 ");
    assert_has(ask("GET /eventsmore HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n"), " 404 ");
    assert_has(ask("GET /rtm HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n"), " 404 ");
}

static void a_line_in_pieces_finds_its_way(void **state)
{
    (void)state;
    static const char *const targets[] = {"/rtm/abc", "/api/now"};
    char answer[4096];
    for (size_t i = 0; i < 2; i++) {
        char request[128];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nConnection: close\r\n" HOST "\r\n",
                 targets[i]);
        int fd = client_open();
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        for (const char *at = request; *at != '\0'; at++)
            client_send(fd, at, 1);
        assert_true(client_read_all(fd, answer, sizeof answer) > 0);
        assert_has(answer, i == 0 ? "TAKEN GET /rtm/abc" : "\"ok\":true");
        close(fd);
    }
}

// As nginx does with its connections to a server.
static void a_used_connection_is_handed_over(void **state)
{
    (void)state;
    char answer[4096];
    static const char upgrade[] =
        "GET /rtm/abc?x=%41 HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    for (int late = 0; late < 2; late++) {
        int fd = client_open();
        client_say(fd, late ? "GET /api/late HTTP/1.1\r\n" HOST "\r\n"
                            : "GET /api/now HTTP/1.1\r\n" HOST "\r\n");
        client_read_until(fd, "\"ok\":true", answer, sizeof answer);
        client_say(fd, upgrade);
        assert_true(client_read_all(fd, answer, sizeof answer) > 0);
        assert_has(answer, "TAKEN GET /rtm/abc?x=%41 HTTP/1.1, upgrade websocket 1, rest ''");
        close(fd);
    }
    assert_has(ask(GET "\r\nGET /rtm/x HTTP/1.1\r\n" HOST "Content-Length : 1\r\n\r\n"), " 400 ");
}

static void too_many_connections_are_refused(void **state)
{
    (void)state;
    int fds[FIXTURE_CONNECTIONS_MAX + 5];
    const size_t count = sizeof fds / sizeof fds[0];
    int64_t before = metric_value(METRIC_HTTP_CONNECTIONS_REFUSED);
    char byte;
    for (size_t i = 0; i < count; i++)
        fds[i] = client_open();
    for (size_t i = FIXTURE_CONNECTIONS_MAX; i < count; i++)
        assert_int_equal(recv(fds[i], &byte, 1, 0), 0);
    assert_int_equal(metric_value(METRIC_HTTP_CONNECTIONS_REFUSED), before + 5);
    assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void without_descriptors_connections_are_refused(void **state)
{
    (void)state;
    struct rlimit limit;
    struct rlimit tight;
    char byte;
    int fd = client_open();
    int waiting = dup(fd); // its number is where the next descriptor would be
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    tight = limit;
    client_say(fd, "GET ");
    close(waiting);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    tight.rlim_cur = (rlim_t)other + 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)fixture.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    // Fill the holes, so that accepting has no descriptor left.
    int fillers[64];
    int count = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    while (count < 64 && (fillers[count] = dup(other)) >= 0)
        count++;
    assert_int_equal(connect(other, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(recv(other, &byte, 1, 0), 0);
    while (count > 0)
        close(fillers[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    close(other);
    close(fd);
    // A server that is just at it may refuse who comes next, too.
    const char *answer = ask(GET "Connection: close\r\n\r\n");
    for (int i = 0; i < 100 && answer[0] == '\0'; i++)
        answer = ask(GET "Connection: close\r\n\r\n");
    assert_has(answer, "\"ok\":true");
}

static void clients_that_go_away_leave_nothing(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "GE",
        "GET /api/now HTTP/1.1\r\n",
        GET "X: y\r\n",
        POST "Content-Length: 100\r\n\r\nabc",
        "GET /api/late?ms=50 HTTP/1.1\r\n" HOST "\r\n",
        "GET /api/big?n=20000000 HTTP/1.1\r\n" HOST "\r\n",
        POST "Content-Length: 200000\r\n\r\n",
        POST CHUNKED "\r\n64\r\nabc",
        "POST /api/late?ms=50 HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n\r\n",
        "POST /api/big?n=20000000 HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n\r\n",
    };
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
            int fd = client_open();
            client_say(fd, requests[i]);
            close(fd);
        }
    }
    int64_t start = now_ms();
    while (metric_value(METRIC_HTTP_CONNECTIONS) > 0 && now_ms() - start < 10000)
        poll(NULL, 0, 5);
    assert_int_equal(metric_value(METRIC_HTTP_CONNECTIONS), 0);
}

// Without a teardown: stopping is what it is about.
static void a_call_in_work_is_answered_before_the_end(void **state)
{
    char answer[4096];
    int before = descriptors_open();
    fixture_start(state);
    int idle = client_open();
    int fd = client_open();
    client_say(idle, GET "\r\n");
    client_read_until(idle, "\"ok\":true", answer, sizeof answer);
    client_say(fd, "GET /api/late?ms=2000 HTTP/1.1\r\n" HOST "\r\n");
    while (fixture.calls_begun < 2)
        poll(NULL, 0, 1);
    assert_int_equal(loop_post(fixture.loop, fixture_quiesce, NULL), 0);
    while (!fixture.quiesced)
        poll(NULL, 0, 1);
    client_say(idle, GET "\r\n");
    assert_true(client_read_all(idle, answer, sizeof answer) > 0);
    assert_has(answer, "\r\nConnection: close\r\n");
    assert_has(answer, "\"ok\":true");
    assert_true(client_read_all(fd, answer, sizeof answer) > 0);
    assert_has(answer, "\r\nConnection: close\r\n");
    assert_has(answer, "\"ok\":true");
    fixture_join();
    close(idle);
    close(fd);
    assert_int_equal(descriptors_open(), before);
}

static void the_server_goes_before(void **state, const char *request)
{
    fixture_start(state);
    int fd = client_open();
    client_say(fd, request);
    while (fixture.calls_begun < 1)
        poll(NULL, 0, 1);
    loop_stop(fixture.loop);
    pthread_join(fixture.thread, NULL);
    server_free(fixture.server);
    late_now(fixture.late);
    loop_free(fixture.loop);
    close(fd);
}

// The handler still holds its request when the server is gone.
static void a_call_may_outlive_the_server(void **state)
{
    the_server_goes_before(state, "GET /api/late?ms=60000 HTTP/1.1\r\n" HOST "\r\n");
    the_server_goes_before(state,
                           "GET /api/late?ms=60000 HTTP/1.1\r\n" HOST CHUNKED "\r\n0\r\n\r\n");
}

static int fixture_start_short(void **state)
{
    (void)state;
    return fixture_start_with(FIXTURE_SOON_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_stop)
#define TEST_OF_DEADLINES(name)                                                                    \
    cmocka_unit_test_setup_teardown(name, fixture_start_short, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_before_a_half_close_are_answered),
        TEST(a_long_reply_after_a_half_close_is_whole),
        TEST(pipelined_requests_are_all_answered),
        TEST(a_client_can_read_that_its_body_is_too_large),
        TEST(the_largest_body_is_taken),
        TEST_OF_DEADLINES(slow_senders_are_cut_off),
        TEST_OF_DEADLINES(silence_is_ended_but_not_work),
        TEST_OF_DEADLINES(who_does_not_read_is_cut_off),
        TEST(sockets_are_handed_over),
        TEST(a_line_in_pieces_finds_its_way),
        TEST(a_used_connection_is_handed_over),
        TEST(too_many_connections_are_refused),
        TEST(without_descriptors_connections_are_refused),
        TEST_OF_DEADLINES(clients_that_go_away_leave_nothing),
        cmocka_unit_test(a_call_in_work_is_answered_before_the_end),
        cmocka_unit_test(a_call_may_outlive_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
