// SPDX-License-Identifier: Apache-2.0
// Calls over HTTP: arguments in every form, tokens, replies and statuses.
#include "test_http_fixture.h"

#define JSON "Content-Type: application/json\r\n"
#define FORM "Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n"

// A request that asks for a close after its reply, with a body.
static char *ask_method(const char *target, const char *headers, const char *body)
{
    char text[8192];
    snprintf(
        text, sizeof text,
        "POST %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
        target, headers, strlen(body), body);
    return ask(text);
}

static void arguments_come_from_query_and_body_together(void **state)
{
    (void)state;
    const char *answer = ask_method("/api/echo?a=1&b=2", FORM, "b=3&c=4");
    assert_has(answer, "\"args\":{\"a\":\"1\",\"b\":\"3\",\"c\":\"4\"}");
    answer = ask_method("/api/echo?a=1&b=2", JSON, "{\"b\":\"3\",\"c\":null}");
    assert_has(answer, "\"args\":{\"a\":\"1\",\"b\":\"3\"}");
    answer = ask_method("/api//echo?a=1&a=2", FORM, "");
    assert_has(answer, "\"args\":{\"a\":\"2\"}");
    answer = ask("GET /api/echo?a=%20x+y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" FORM "\r\n");
    assert_has(answer, "\"args\":{\"a\":\" x y\"}");
}

static void forms_are_decoded(void **state)
{
    (void)state;
    const char *answer =
        ask_method("/api/echo", FORM, "text=h%C3%A9+%3C%40U1%3E%0Aline&p=100% sure&e=&x&=&q=%2");
    assert_has(answer, "\"args\":{\"text\":\"hé <@U1>\\nline\",\"p\":\"100% sure\",\"e\":\"\","
                       "\"x\":\"\",\"q\":\"%2\"}");
    answer = ask_method("/api/echo", "Content-Type: text/plain\r\n", "a=1");
    assert_has(answer, "\"args\":{\"a\":\"1\"}");
    answer = ask_method("/api/echo", "", "a=1");
    assert_has(answer, "\"error\":\"missing_post_type\"");
    answer = ask_method("/api/echo", FORM, "text=%FF");
    assert_has(answer, "\"error\":\"invalid_form_data\"");
    assert_has(answer, "[ERROR] text: must be UTF-8 text");
    answer = ask_method("/api/echo", FORM, "text=a%00b");
    assert_has(answer, "\"error\":\"invalid_form_data\"");
    answer = ask_method("/api/echo?x=%C0%AF", FORM, "");
    assert_has(answer, "\"error\":\"invalid_form_data\"");
}

static void multipart_bodies_are_understood(void **state)
{
    (void)state;
    static const char type[] = "Content-Type: multipart/form-data; boundary=\"xy\"; more=1\r\n";
    const char *answer =
        ask_method("/api/echo?q=1", type,
                   "--xy\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi\r\n-- there\r\n"
                   "--xy\r\nX: y\r\ncontent-disposition: form-data; filename=\"f\"; "
                   "name=b\r\n\r\n\r\n--xy--\r\n");
    assert_has(answer, "\"args\":{\"q\":\"1\",\"text\":\"hi\\r\\n-- there\",\"b\":\"\"}");

    static const char *const broken[] = {
        "x",
        "--xy",
        "--xy\r\n",
        "--xy\r\n--xy--\r\n",
        "--xy\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhi",
        "--xy\r\nContent-Disposition: form-data\r\n\r\nhi\r\n--xy--\r\n",
        "--xy\r\nContent-Disposition: form-data; name=\"a\"\r\n--xy--\r\n",
        "--xy\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--xy--\r\n",
        "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--xy--\r\n",
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_has(ask_method("/api/echo", type, broken[i]), "\"error\":\"invalid_form_data\"");
    answer = ask_method("/api/echo", "Content-Type: multipart/form-data\r\n", "--\r\n");
    assert_has(answer, "\"error\":\"invalid_form_data\"");
}

static void an_empty_body_may_have_any_type(void **state)
{
    (void)state;
    assert_has(ask_method("/api/echo", "Content-Type: application/json;charset=utf-8\r\n", ""),
               "\"args\":{}");
    assert_has(ask_method("/api/echo", FORM, ""), "\"args\":{}");
    assert_has(ask_method("/api/echo", "Content-Type: image/png\r\n", ""), "\"args\":{}");
    assert_has(ask_method("/api/echo", "Content-Type: image/png\r\n", "a=1"),
               "\"error\":\"invalid_post_type\"");
    assert_has(ask_method("/api/echo", JSON, "[]"), "\"error\":\"json_not_object\"");
    assert_has(ask_method("/api/echo", JSON, "{"), "\"error\":\"invalid_json\"");
    assert_int_equal(fixture.calls_begun, 3);
}

static void the_token_of_the_header_wins(void **state)
{
    (void)state;
    assert_has(ask_method("/api/echo?token=q", "Authorization: Bearer h\r\n" FORM, "token=b"),
               "\"token\":\"h\"");
    assert_has(ask_method("/api/echo?token=q", FORM, "token=b"), "\"token\":\"b\"");
    assert_has(ask_method("/api/echo?token=q", FORM, ""), "\"token\":\"q\"");
    assert_has(ask_method("/api/echo?token=q", "Authorization: Basic eA==\r\n", ""),
               "\"token\":\"q\"");
    assert_has(ask_method("/api/echo", "", ""), "\"token\":\"\"");
    assert_has(ask_method("/api/echo", "Idempotency-Key: k-1\r\n", ""), "\"key\":\"k-1\"");
    assert_has(ask_method("/api/echo", "", ""), "\"host\":\"here\"");
}

static void replies_have_the_headers_that_clients_need(void **state)
{
    (void)state;
    const char *answer = ask_method("/api/now", "X-Request-Id: my.id_1-2\r\n", "");
    assert_has(answer, "HTTP/1.1 200 OK\r\n");
    assert_has(answer, "\r\nContent-Type: application/json; charset=utf-8\r\n");
    assert_has(answer, "\r\nX-Request-Id: my.id_1-2\r\n");
    assert_has(answer, "\r\nCache-Control: no-store\r\n");
    assert_has(answer, "\r\nX-Content-Type-Options: nosniff\r\n");
    assert_has(answer, "\r\n\r\n{\"ok\":true,\"ts\":\"1717200000.123456\"}");
    answer = ask_method("/api/now", "X-Request-Id: not fine\r\n", "");
    assert_has(answer, "\r\nX-Request-Id: ");
    assert_has_not(answer, "not fine");
}

static void errors_are_200_unless_asked_otherwise(void **state)
{
    (void)state;
    const char *answer = ask_method("/api/fail", "", "");
    assert_has(answer, "HTTP/1.1 200 OK\r\n");
    assert_has(answer, "\r\nContent-Type: application/json; charset=utf-8\r\n");
    assert_has(answer, "{\"ok\":false,\"error\":\"invalid_auth\",");
    answer = ask_method("/api/fail", "X-Tidings-Errors: http\r\n", "");
    assert_has(answer, "HTTP/1.1 401 Unauthorized\r\n");
    assert_has(answer, "\r\nWWW-Authenticate: Bearer\r\n");
    assert_has(answer, "\r\nContent-Type: application/problem+json\r\n");
    assert_has(answer, "\"status\":401,\"detail\":\"no\",\"instance\":\"/api/fail\","
                       "\"code\":\"invalid_auth\",\"ok\":false,\"error\":\"invalid_auth\"");
    answer = ask_method("/api/now", "X-Tidings-Errors: http\r\n", "");
    assert_has(answer, "\r\nContent-Type: application/json; charset=utf-8\r\n");
    assert_has(ask_method("/api/no.such", "", ""), "\"error\":\"unknown_method\"");
    assert_has(ask_method("/api/%6eow", "", ""), "\"error\":\"unknown_method\"");
}

static void what_is_no_method_has_real_statuses(void **state)
{
    (void)state;
    const char *answer = ask_method("/nowhere", "", "");
    assert_has(answer, "HTTP/1.1 404 Not Found\r\n");
    assert_has(answer, "{\"ok\":false,\"error\":\"not_found\"}");
    assert_has(ask_method("/api/", "", ""), "\"error\":\"unknown_method\"");
    assert_has(ask_method("/api", "", ""), "HTTP/1.1 404 ");
    answer = ask("PUT /api/now HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_has(answer, "HTTP/1.1 405 Method Not Allowed\r\n");
    assert_has(answer, "\r\nAllow: GET, POST, HEAD\r\n");
    answer = ask("GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_has(answer, "HTTP/1.1 200 OK\r\n");
    assert_has(answer, "\r\nContent-Type: text/plain\r\n");
    assert_has(answer, "\r\n\r\nfine");
    answer = ask("HEAD /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_has(answer, "\r\nContent-Length: 4\r\n");
    assert_has_not(answer, "\r\n\r\nfine");
    answer = ask_method("/healthz", "", "");
    assert_has(answer, "HTTP/1.1 405 ");
    assert_has(answer, "\r\nAllow: GET, HEAD\r\n");
}

static void a_body_in_pieces_is_one_body(void **state)
{
    (void)state;
    char answer[4096];
    int fd = client_open();
    client_say(fd, "POST /api/echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" FORM
                   "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    client_read_until(fd, "HTTP/1.1 100 Continue\r\n\r\n", answer, sizeof answer);
    client_say(fd, "3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n");
    assert_true(client_read_all(fd, answer, sizeof answer) > 0);
    assert_has(answer, "\"args\":{\"a\":\"1\",\"b\":\"2\"}");
    close(fd);
}

static void too_large_replies_are_refused(void **state)
{
    (void)state;
    int64_t before = metric_value(METRIC_HTTP_REPLY_TOO_LARGE);
    assert_has(ask_method("/api/big?n=40000000", "", ""), "\"error\":\"internal_error\"");
    assert_int_equal(metric_value(METRIC_HTTP_REPLY_TOO_LARGE), before + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arguments_come_from_query_and_body_together),
        TEST(forms_are_decoded),
        TEST(multipart_bodies_are_understood),
        TEST(an_empty_body_may_have_any_type),
        TEST(the_token_of_the_header_wins),
        TEST(replies_have_the_headers_that_clients_need),
        TEST(errors_are_200_unless_asked_otherwise),
        TEST(what_is_no_method_has_real_statuses),
        TEST(a_body_in_pieces_is_one_body),
        TEST(too_large_replies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
