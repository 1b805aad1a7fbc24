// SPDX-License-Identifier: Apache-2.0
// Which bodies are let in, when the question is asked, and what is read of those that are.
#include "test_http_fixture.h"

#include "base/json.h"

#define HEAD "POST /api/echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
#define JSON "Content-Type: application/json\r\n"
#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"

static char request_text[2 * FIXTURE_BODY_MAX];

// Asks with `headers` and a form of `length` bytes; answers as ask().
static const char *ask_form(const char *headers, int length)
{
    int head = snprintf(request_text, sizeof request_text, HEAD FORM "%sContent-Length: %d\r\n\r\n",
                        headers, length);
    memset(request_text + head, 'a', (size_t)length);
    memcpy(request_text + head, "a=", 2);
    return ask_bytes(request_text, (size_t)(head + length));
}

static const char *ask_json(const char *headers, const char *json)
{
    snprintf(request_text, sizeof request_text, HEAD JSON "%sContent-Length: %zu\r\n\r\n%s",
             headers, strlen(json), json);
    return ask(request_text);
}

// An array of `values` numbers as the member a.
static const char *numbers(int values)
{
    static char json[100000];
    size_t length = (size_t)snprintf(json, sizeof json, "{\"a\":[0");
    for (int i = 1; i < values; i++)
        length += (size_t)snprintf(json + length, sizeof json - length, ", 1");
    snprintf(json + length, sizeof json - length, "]}");
    return json;
}

static void large_bodies_alone_are_asked_for(void **state)
{
    (void)state;
    assert_has(ask_form("Authorization: Bearer ann\r\n", SERVER_BODY_SMALL_BYTES), "\"ok\":true");
    assert_int_equal(fixture.admissions, 0);
    assert_has(ask_form("Authorization: Bearer ann\r\n", SERVER_BODY_SMALL_BYTES + 1),
               "\"ok\":true");
    assert_int_equal(fixture.admissions, 1);
    assert_has(ask(HEAD "Authorization: Bearer ann\r\nTransfer-Encoding: chunked\r\n" FORM
                        "\r\n3\r\na=1\r\n0\r\n\r\n"),
               "\"a\":\"1\"");
    assert_int_equal(fixture.admissions, 2);
}

static void what_is_not_let_in_is_answered_unread(void **state)
{
    (void)state;
    const char *answer = ask(HEAD FORM "Authorization: Bearer nobody\r\n"
                                       "Content-Length: 90000\r\n\r\na=");
    assert_has(answer, "HTTP/1.1 200 ");
    assert_has(answer, "\"error\":\"invalid_auth\"");
    answer = ask(HEAD FORM "Authorization: Bearer nobody\r\nExpect: 100-continue\r\n"
                           "Content-Length: 90000\r\n\r\n");
    assert_has_not(answer, "100 Continue");
    assert_has(answer, "\"error\":\"invalid_auth\"");
    assert_int_equal(fixture.calls_begun, 0);
}

static void who_waits_for_leave_gets_it(void **state)
{
    (void)state;
    char text[4096];
    int fd = client_open();
    client_say(fd, HEAD FORM "Authorization: Bearer later\r\nExpect: 100-continue\r\n"
                             "Content-Length: 5000\r\n\r\n");
    client_read_until(fd, "100 Continue", text, sizeof text);
    memset(request_text, 'a', 5000);
    client_send(fd, request_text, 5000);
    client_read_until(fd, "\"ok\":true", text, sizeof text);
    close(fd);
}

static void the_answer_may_come_later(void **state)
{
    (void)state;
    const char *answer = ask_form("Authorization: Bearer later\r\n", 50000);
    assert_has(answer, "\"ok\":true");
    assert_int_equal(fixture.admissions, 1);
    // The caller has gone before.
    int fd = client_open();
    client_say(fd, HEAD FORM "Authorization: Bearer later\r\nContent-Length: 50000\r\n\r\na");
    close(fd);
    fd = client_open();
    close(fd);
    assert_has(ask_form("Authorization: Bearer later\r\n", 50000), "\"ok\":true");
}

static void a_strangers_body_is_small(void **state)
{
    (void)state;
    int64_t before = metric_value(METRIC_BODIES_STRANGER_LARGE);
    assert_has(ask_form("", FIXTURE_STRANGER_MAX), "\"ok\":true");
    assert_has(ask_form("", FIXTURE_STRANGER_MAX + 1), "\"error\":\"request_too_large\"");
    assert_has(ask_form("Authorization: Bearer ann\r\n", FIXTURE_STRANGER_MAX + 1), "\"ok\":true");
    int head =
        snprintf(request_text, sizeof request_text,
                 HEAD FORM "Transfer-Encoding: chunked\r\n\r\n%x\r\n", FIXTURE_STRANGER_MAX + 1);
    memset(request_text + head, 'a', FIXTURE_STRANGER_MAX + 1);
    assert_has(ask_bytes(request_text, (size_t)head + FIXTURE_STRANGER_MAX + 1), "needs its token");
    assert_int_equal(metric_value(METRIC_BODIES_STRANGER_LARGE), before + 2);
}

// Opens a connection with `headers` whose body of `bytes` bytes does not come.
static int hold_with(const char *headers, int bytes)
{
    char text[256];
    int fd = client_open();
    int64_t before = metric_value(METRIC_BODIES_BYTES);
    snprintf(text, sizeof text, HEAD FORM "%sContent-Length: %d\r\n\r\na", headers, bytes);
    client_say(fd, text);
    for (int i = 0; i < 1000 && metric_value(METRIC_BODIES_BYTES) < before + bytes; i++)
        usleep(2000);
    assert_int_equal(metric_value(METRIC_BODIES_BYTES), before + bytes);
    return fd;
}

static int hold(const char *token, int bytes)
{
    char header[64];
    snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
    return hold_with(header, bytes);
}

static void wait_for_none(void)
{
    for (int i = 0; i < 1000 && metric_value(METRIC_BODIES_BYTES) > 0; i++)
        usleep(2000);
    assert_int_equal(metric_value(METRIC_BODIES_BYTES), 0);
}

static void a_user_has_a_share(void **state)
{
    (void)state;
    int64_t before = metric_value(METRIC_BODIES_USER);
    int fd = hold("ann", FIXTURE_BODY_MAX);
    const char *answer =
        ask_form("Authorization: Bearer ann\r\n", FIXTURE_USER_BODIES - FIXTURE_BODY_MAX + 1);
    assert_has(answer, "HTTP/1.1 429 ");
    assert_has(answer, "Retry-After: 1\r\n");
    assert_has(answer, "\"error\":\"ratelimited\"");
    assert_int_equal(metric_value(METRIC_BODIES_USER), before + 1);
    assert_has(ask_form("Authorization: Bearer ann\r\n", FIXTURE_USER_BODIES - FIXTURE_BODY_MAX),
               "\"ok\":true");
    assert_has(ask_form("Authorization: Bearer bob\r\n", FIXTURE_BODY_MAX), "\"ok\":true");
    close(fd);
}

static void all_users_together_have_one(void **state)
{
    (void)state;
    static const char *const users[] = {"ann", "bob", "cid"};
    int fds[3];
    int64_t before = metric_value(METRIC_BODIES_ALL);
    for (size_t i = 0; i < 3; i++)
        fds[i] = hold(users[i], FIXTURE_BODY_MAX);
    const char *answer = ask_form("Authorization: Bearer dan\r\n", SERVER_BODY_SMALL_BYTES + 1);
    assert_has(answer, "\"error\":\"service_unavailable\"");
    assert_has(answer, "Retry-After: 1\r\n");
    assert_int_equal(metric_value(METRIC_BODIES_ALL), before + 1);
    assert_has(ask_form("Authorization: Bearer dan\r\n", SERVER_BODY_SMALL_BYTES), "\"ok\":true");
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
    wait_for_none();
    assert_has(ask_form("Authorization: Bearer dan\r\n", FIXTURE_BODY_MAX), "\"ok\":true");
    wait_for_none();
}

static void strangers_share_one(void **state)
{
    (void)state;
    enum { HELD = 5, LEFT = FIXTURE_STRANGERS_BODIES - HELD * FIXTURE_STRANGER_MAX };
    int fds[HELD];
    int64_t before = metric_value(METRIC_BODIES_STRANGERS);
    for (size_t i = 0; i < HELD; i++)
        fds[i] = hold_with("", FIXTURE_STRANGER_MAX);
    const char *answer = ask_form("", LEFT + 1);
    assert_has(answer, "HTTP/1.1 429 ");
    assert_has(answer, "Retry-After: 1\r\n");
    assert_int_equal(metric_value(METRIC_BODIES_STRANGERS), before + 1);
    assert_has(ask_form("", LEFT), "\"ok\":true");
    assert_has(ask_form("Authorization: Bearer ann\r\n", LEFT + 1), "\"ok\":true");
    for (size_t i = 0; i < HELD; i++)
        close(fds[i]);
    wait_for_none();
    assert_has(ask_form("", FIXTURE_STRANGER_MAX), "\"ok\":true");
}

static void the_number_of_values_is_bounded(void **state)
{
    (void)state;
    int64_t before = metric_value(METRIC_BODIES_VALUES);
    // The object and the array are values too.
    const char *answer = ask_json("", numbers(FIXTURE_VALUES_MAX - 2));
    assert_has(answer, "\"args\":{\"a\":\"[0,1,1");
    answer = ask_json("", numbers(FIXTURE_VALUES_MAX - 1));
    assert_has(answer, "\"error\":\"invalid_json\"");
    assert_has(answer, "more than 1000 JSON values");
    assert_int_equal(metric_value(METRIC_BODIES_VALUES), before + 1);
}

static void values_are_counted_as_json_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t values;
        int depth;
    } texts[] = {
        {"1", 1, 0},
        {"\"a,b\\\",[\"", 1, 0},
        {"[]", 1, 1},
        {"[[],[]]", 3, 2},
        {"{\"a\":1,\"b\":\"c\"}", 3, 1},
        {" [ 1 , true,null ] ", 4, 1},
        {"{\"a\":{}}", 2, 2},
        {"[-1.5e3,\"\"]", 3, 1},
        {"", 0, 0},
        {"[1,1,::::::]", 3, 1}, // a parser reads as far as this
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct json_size size = json_measure(texts[i].text, strlen(texts[i].text));
        assert_int_equal(size.values, texts[i].values);
        assert_int_equal(size.depth, texts[i].depth);
    }
}

static void the_token_may_be_in_a_body_that_is_not_read_yet(void **state)
{
    (void)state;
    // A number makes the body one for the parser.
    assert_has(ask_json("", "{\"a\":1,\"token\":\"ann\"}"), "\"token\":\"ann\"");
    assert_has(ask_json("", "{\"a\":{\"token\":\"no\"},\"token\" : \"ann\"}"), "\"token\":\"ann\"");
    assert_has(ask_json("", "{\"a\":\"token\",\"b\":[\"token\"],\"c\":1}"), "\"token\":\"\"");
    assert_has(ask_json("", "{\"token\":1}"), "\"token\":\"1\"");
}

static void large_bodies_are_read_aside(void **state)
{
    (void)state;
    int64_t before = metric_value(METRIC_BODIES_PARSED_ASIDE);
    assert_has(ask_json("", "{\"a\":1}"), "\"a\":\"1\"");
    assert_int_equal(metric_value(METRIC_BODIES_PARSED_ASIDE), before);
    assert_has(ask_json("", numbers(FIXTURE_VALUES_MAX - 2)), "\"ok\":true");
    assert_has(ask_form("Authorization: Bearer ann\r\n", FIXTURE_BODY_MAX), "\"ok\":true");
    assert_int_equal(metric_value(METRIC_BODIES_PARSED_ASIDE), before + 2);
    // The caller goes while its body is read.
    int fd = client_open();
    snprintf(request_text, sizeof request_text, HEAD JSON "Content-Length: %zu\r\n\r\n%s",
             strlen(numbers(900)), numbers(900));
    client_say(fd, request_text);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(large_bodies_alone_are_asked_for),
        TEST(what_is_not_let_in_is_answered_unread),
        TEST(who_waits_for_leave_gets_it),
        TEST(the_answer_may_come_later),
        TEST(a_strangers_body_is_small),
        TEST(a_user_has_a_share),
        TEST(all_users_together_have_one),
        TEST(strangers_share_one),
        TEST(the_number_of_values_is_bounded),
        cmocka_unit_test(values_are_counted_as_json_has_them),
        TEST(the_token_may_be_in_a_body_that_is_not_read_yet),
        TEST(large_bodies_are_read_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
