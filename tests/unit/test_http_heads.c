// SPDX-License-Identifier: Apache-2.0
// Heads of requests that are refused: of a connection's first request, and of later ones.
#include "test_http_fixture.h"

#define SMUGGLED "GET /api/late HTTP/1.1\r\n" HOST "\r\n"

static void refused(const char *request, size_t length)
{
    const char *answer = ask_bytes(request, length);
    if (strncmp(answer, "HTTP/1.1 400 ", 13) != 0 || count_of(answer, "HTTP/1.1 ") != 1 ||
        !strstr(answer, "\r\nConnection: close\r\n") || fixture.calls_begun != 0)
        fail_msg("%s is answered by %s", request, answer);
}

// The bytes after each of these would be a request for whoever reads its length otherwise.
static void ambiguous_requests_are_refused(void **state)
{
    (void)state;
    static const char *const requests[] = {
        POST "Content-Length: 5\r\n" CHUNKED "\r\n0\r\n\r\n" SMUGGLED,
        POST CHUNKED "Content-Length: 5\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" SMUGGLED,
        POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" SMUGGLED,
        POST CHUNKED CHUNKED "\r\n0\r\n\r\n" SMUGGLED,
        POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST "Transfer-Encoding: identity\r\n\r\n" SMUGGLED,
        "POST /api/now HTTP/1.0\r\n" HOST CHUNKED "\r\n0\r\n\r\n" SMUGGLED,
        POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
        POST "Content-Length : 5\r\n\r\nhello" SMUGGLED,
        POST "Content-Length\t: 5\r\n\r\nhello" SMUGGLED,
        POST "Content-Length: 5\r\n 0\r\n\r\nhello" SMUGGLED,
        "POST /api/now HTTP/1.1\r\n Content-Length: 5\r\n" HOST "\r\nhello" SMUGGLED,
        GET "X: y\r\n\tfolded\r\n\r\n" SMUGGLED,
        GET ": x\r\n\r\n" SMUGGLED,
        GET ":\r\n\r\n" SMUGGLED,
        GET ":\r\n" SMUGGLED,
        GET "X: a\nY: b\r\n\r\n" SMUGGLED,
        GET "\n" SMUGGLED,
        "GET /api/now HTTP/1.1\n" HOST "\r\n" SMUGGLED,
        GET "X: a\rb\r\n\r\n" SMUGGLED,
        GET "X: a\x01"
            "b\r\n\r\n" SMUGGLED,
        GET HOST "\r\n" SMUGGLED,
        "GET /api/now HTTP/1.1\r\n\r\n" SMUGGLED,
        "GET /api/now HTTP/1.1\r\nHost: a b\r\n\r\n" SMUGGLED,
        "GET /api/now HTTP/1.1\r\nHost:\r\n\r\n" SMUGGLED,
        GET "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n" SMUGGLED,
        "get /api/now HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
        "NONE /api/now HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
        "GET /api/now x HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
        "GET api/now HTTP/1.1\r\n" HOST "\r\n" SMUGGLED,
        "GET /api/now HTTP/1.2\r\n" HOST "\r\n" SMUGGLED,
        "GET /api/now\r\n" SMUGGLED,
        POST CHUNKED "\r\n-1\r\n\r\n" SMUGGLED,
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        refused(requests[i], strlen(requests[i]));
}

static void nuls_are_refused(void **state)
{
    (void)state;
    static const char value[] = GET "X: a\0b\r\n\r\n" SMUGGLED;
    static const char values[] = GET "X: a\0\0b\r\n\r\n" SMUGGLED;
    static const char name[] = GET "X\0y: a\r\n\r\n" SMUGGLED;
    static const char target[] = "GET /api/now\0x HTTP/1.1\r\n" HOST "\r\n" SMUGGLED;
    refused(value, sizeof value - 1);
    refused(values, sizeof values - 1);
    refused(name, sizeof name - 1);
    refused(target, sizeof target - 1);
}

static const char *const bad_lengths[] = {
    "2, 2", "-2", "+2", "0x2", "two", "2 2", "2 ", "", " ", "2;", "99999999999999999999999999",
};

// libmicrohttpd would answer these itself, as HTML and with two status lines.
static void assert_one_json_refusal(const char *answer)
{
    if (count_of(answer, "HTTP/1.1 400 Bad Request\r\n") != 1 ||
        !strstr(answer, "\r\nX-Request-Id: ") ||
        !strstr(answer, "\r\nContent-Type: application/json") ||
        !strstr(answer, "\r\nConnection: close\r\n") ||
        !strstr(answer, "\r\n\r\n{\"ok\":false,\"error\":\"bad_request\""))
        fail_msg("no one refusal: %s", answer);
}

static void malformed_lengths_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_lengths / sizeof bad_lengths[0]; i++) {
        char request[256];
        snprintf(request, sizeof request, POST "cOntent-lEngth: %s\r\n\r\n{}", bad_lengths[i]);
        assert_one_json_refusal(ask(request));
    }
    assert_int_equal(fixture.calls_begun, 0);
}

// The acceptor sees a connection's first request only.
static void malformed_lengths_of_later_requests_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_lengths / sizeof bad_lengths[0]; i++) {
        for (int is_late = 0; is_late < 2; is_late++) {
            char request[256];
            char answer[4096];
            int fd = client_open();
            client_say(fd, is_late ? "GET /api/late HTTP/1.1\r\n" HOST "\r\n" : GET "\r\n");
            client_read_until(fd, "\"ok\":true", answer, sizeof answer);
            snprintf(request, sizeof request, POST "Content-Length:\t%s\r\n\r\n{}", bad_lengths[i]);
            client_say(fd, request);
            assert_true(client_read_all(fd, answer, sizeof answer) > 0);
            assert_one_json_refusal(answer);
            close(fd);
        }
    }
    assert_int_equal(fixture.calls_begun, 2 * sizeof bad_lengths / sizeof bad_lengths[0]);
}

// What libmicrohttpd would answer itself, as HTML, of a connection's later requests.
static void later_heads_are_refused_as_first_ones(void **state)
{
    (void)state;
    static char target[25000];
    static char fields[25000];
    snprintf(target, sizeof target, "GET /%020000d HTTP/1.1\r\n" HOST "\r\n", 0);
    snprintf(fields, sizeof fields, GET "X: %020000d\r\n\r\n", 0);
    const char *const heads[] = {"GET /api/now HTTP/9.9\r\n" HOST "\r\n",
                                 "GET /api/now HTTP/2.0\r\n" HOST "\r\n",
                                 "GET /api/now FTP/1.1\r\n" HOST "\r\n",
                                 "GET /api/now HTTP/1.1 x\r\n" HOST "\r\n",
                                 "GET  /api/now HTTP/1.1\r\n" HOST "\r\n",
                                 "GET   /api/now?a=b HTTP/1.1\r\n" HOST "\r\n",
                                 "GET /api/now  HTTP/1.1\r\n" HOST "\r\n",
                                 "GET /api/now HTTP/1.1\r\nno colon\r\n\r\n",
                                 "GET /api/now HTTP/1.1\r\n\r\n",
                                 target,
                                 fields};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char first[4096];
        char later[4096];
        for (int is_later = 0; is_later < 2; is_later++) {
            int fd = client_open();
            if (is_later) {
                client_say(fd, GET "\r\n");
                client_read_until(fd, "\"ok\":true", later, sizeof later);
            }
            client_say(fd, heads[i]);
            char *answer = is_later ? later : first;
            assert_true(client_read_all(fd, answer, sizeof first) > 0);
            assert_int_equal(count_of(answer, "HTTP/1.1 4"), 1);
            assert_non_null(strstr(answer, "{\"ok\":false,\"error\":\"bad_request\""));
            close(fd);
        }
        assert_memory_equal(later, first, strlen("HTTP/1.1 400"));
    }
}

static void what_is_no_http_is_told_so_at_once(void **state)
{
    (void)state;
    static const char *const openings[] = {"GARBAGE\r\n",
                                           "POST\r\n",
                                           "POST  /api/now HTTP/1.1\r\n",
                                           "{}",
                                           "\x16\x03\x01\x02",
                                           "SSH-2.0-x",
                                           "\r\n",
                                           "GET\n",
                                           "GET /api/now HTTP/1.1\n"};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        assert_one_json_refusal(ask(openings[i]));
}

static void heads_are_bounded(void **state)
{
    (void)state;
    static char text[60000];
    size_t length = (size_t)snprintf(text, sizeof text, GET);
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "X-%d: 1\r\n", i);
    snprintf(text + length, sizeof text - length, "\r\n");
    refused(text, strlen(text));

    snprintf(text, sizeof text, GET "X: %050000d\r\n\r\n", 0);
    assert_has(ask(text), "HTTP/1.1 431 ");
    snprintf(text, sizeof text, "GET /%050000d HTTP/1.1\r\n" HOST "\r\n", 0);
    assert_has(ask(text), "HTTP/1.1 414 ");
    snprintf(text, sizeof text, GET "Connection: close\r\nX: %07000d\r\n\r\n", 0);
    assert_has(ask(text), "HTTP/1.1 200 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ambiguous_requests_are_refused),
        TEST(nuls_are_refused),
        TEST(malformed_lengths_are_refused),
        TEST(malformed_lengths_of_later_requests_are_refused),
        TEST(later_heads_are_refused_as_first_ones),
        TEST(what_is_no_http_is_told_so_at_once),
        TEST(heads_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
