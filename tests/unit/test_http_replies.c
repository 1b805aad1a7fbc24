// SPDX-License-Identifier: Apache-2.0
// How many bytes of replies may wait to be read: one reply, one user's, all.
#include "test_http_fixture.h"

enum { SMALL_BYTES = 65536 }; // is not counted

static const char frame[] = "{\"ok\":true,\"text\":\"\"}";

// Asks for a reply of `bytes` bytes.
static const char *request_for(const char *token, int bytes)
{
    static char text[256];
    snprintf(text, sizeof text,
             "GET /api/big?n=%d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
             "Authorization: Bearer %s\r\n\r\n",
             bytes - (int)sizeof frame + 1, token);
    return text;
}

static void wait_for_bytes(int64_t bytes)
{
    for (int i = 0; i < 1000 && metric_value(METRIC_REPLIES_BYTES) != bytes; i++)
        usleep(2000);
    assert_int_equal(metric_value(METRIC_REPLIES_BYTES), bytes);
}

// A reply of `bytes` bytes of which nobody reads more than the head.
static int hold(const char *token, int bytes)
{
    int64_t before = metric_value(METRIC_REPLIES_BYTES);
    char head[4096];
    int small = 4096;
    int fd = client_open();
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client_say(fd, request_for(token, bytes));
    client_read_until(fd, "\r\n\r\n", head, sizeof head);
    wait_for_bytes(before + bytes);
    return fd;
}

// The head of the reply has `part`; a long reply is not read to its end.
static void expect(const char *token, int bytes, const char *part)
{
    int64_t before = metric_value(METRIC_REPLIES_BYTES);
    const char *answer = ask(request_for(token, bytes));
    assert_has(answer, part);
    if (strcmp(part, "HTTP/1.1 429 ") == 0)
        assert_has(answer, "Retry-After: 1\r\n");
    else
        assert_has_not(answer, "Retry-After");
    wait_for_bytes(before);
}

static void one_reply_is_bounded(void **state)
{
    (void)state;
    int64_t before = metric_value(METRIC_HTTP_REPLY_TOO_LARGE);
    char length[64];
    snprintf(length, sizeof length, "Content-Length: %d\r\n", FIXTURE_REPLY_MAX);
    expect("ann", FIXTURE_REPLY_MAX, length);
    assert_int_equal(metric_value(METRIC_HTTP_REPLY_TOO_LARGE), before);
    snprintf(length, sizeof length, "Content-Length: %zu\r\n",
             sizeof "{\"ok\":false,\"error\":\"internal_error\"}" - 1);
    expect("ann", FIXTURE_REPLY_MAX + 1, length);
    assert_int_equal(metric_value(METRIC_HTTP_REPLY_TOO_LARGE), before + 1);
}

static void a_user_has_a_share(void **state)
{
    (void)state;
    enum { LEFT = FIXTURE_USER_REPLIES - FIXTURE_REPLY_MAX };
    int64_t before = metric_value(METRIC_REPLIES_USER);
    int fd = hold("ann", FIXTURE_REPLY_MAX);
    expect("ann", LEFT + 1, "HTTP/1.1 429 ");
    expect("bob", LEFT + 1, "HTTP/1.1 200 ");
    expect("ann", LEFT, "HTTP/1.1 200 ");
    int other = hold("ann", LEFT);
    expect("ann", SMALL_BYTES, "HTTP/1.1 200 ");
    expect("ann", SMALL_BYTES + 1, "HTTP/1.1 429 ");
    assert_int_equal(metric_value(METRIC_REPLIES_USER), before + 2);
    close(fd);
    close(other);
    wait_for_bytes(0);
}

static void all_users_together_have_one(void **state)
{
    (void)state;
    enum { LEFT = FIXTURE_REPLIES - 2 * FIXTURE_REPLY_MAX };
    int64_t before = metric_value(METRIC_REPLIES_ALL);
    int fds[] = {hold("ann", FIXTURE_REPLY_MAX), hold("bob", FIXTURE_REPLY_MAX)};
    expect("cid", LEFT + 1, "HTTP/1.1 429 ");
    assert_int_equal(metric_value(METRIC_REPLIES_ALL), before + 1);
    expect("cid", LEFT, "HTTP/1.1 200 ");
    close(fds[0]);
    close(fds[1]);
    wait_for_bytes(0);
    expect("cid", LEFT + 1, "HTTP/1.1 200 ");
}

static void expect_whole(const char *request)
{
    enum { TEXT_SIZE = FIXTURE_REPLY_MAX + 4096 };
    char *text = malloc(TEXT_SIZE);
    assert_non_null(text);
    int fd = client_open();
    client_say(fd, request);
    ssize_t length = client_read_all(fd, text, TEXT_SIZE);
    assert_true(length > FIXTURE_REPLY_MAX);
    const char *reply = text + length - FIXTURE_REPLY_MAX;
    assert_memory_equal(reply - 4, "\r\n\r\n", 4);
    assert_memory_equal(reply, frame, sizeof frame - 3);
    assert_int_equal(strspn(reply + sizeof frame - 3, "x"), FIXTURE_REPLY_MAX - sizeof frame + 1);
    assert_string_equal(text + length - 2, "\"}");
    close(fd);
    free(text);
}

static void a_long_reply_arrives_whole(void **state)
{
    char chunked[256];
    (void)state;
    expect_whole(request_for("ann", FIXTURE_REPLY_MAX));
    snprintf(chunked, sizeof chunked,
             "POST /api/big?n=%d HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ann\r\n"
             "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
             FIXTURE_REPLY_MAX - (int)sizeof frame + 1);
    expect_whole(chunked);
    wait_for_bytes(0);
}

static void stop_at_once(void *arg)
{
    loop_stop(arg);
}

// Its memory too: see the leak check of a build with AddressSanitizer.
static void a_long_reply_that_nobody_reads_ends_with_the_server(void **state)
{
    (void)state;
    int fd = hold("ann", FIXTURE_REPLY_MAX);
    assert_int_equal(loop_post(fixture.loop, stop_at_once, fixture.loop), 0);
    fixture_join();
    assert_int_equal(metric_value(METRIC_REPLIES_BYTES), 0);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_reply_is_bounded),
        TEST(a_long_reply_arrives_whole),
        cmocka_unit_test_setup(a_long_reply_that_nobody_reads_ends_with_the_server, fixture_start),
        TEST(a_user_has_a_share),
        TEST(all_users_together_have_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
