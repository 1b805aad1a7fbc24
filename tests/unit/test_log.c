// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/log.h"
#include "base/metrics.h"

enum { PIPE_BYTES = 65536 };

// stderr, for the length of a test, is the writing end of a pipe.
static int saved_stderr;
static int reader;

static int setup(void **state)
{
    (void)state;
    int ends[2];
    if (pipe(ends) < 0)
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    saved_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    reader = ends[0];
    log_init(LOG_INFO, "test \"1\"");
    log_access_enable(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(reader);
    return 0;
}

// All that was written up to now.
static char *written(void)
{
    static char text[4 * PIPE_BYTES];
    size_t length = 0;
    ssize_t got;
    while ((got = read(reader, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    return text;
}

// The field `key` of the one line that was written.
static void assert_line(const char *key, const char *expected)
{
    char *text = written();
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    json_t *line = json_loads(text, 0, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, key)), expected);
    assert_string_equal(json_string_value(json_object_get(line, "instance")), "test \"1\"");
    assert_int_equal(strlen(json_string_value(json_object_get(line, "time"))), 27);
    json_decref(line);
}

static void a_line_is_one_json_object(void **state)
{
    (void)state;
    log_write(LOG_WARN, "store", "lost %d of %s", 3, "them");
    assert_line("message", "lost 3 of them");
}

static void levels_below_the_least_are_not_written(void **state)
{
    (void)state;
    log_write(LOG_DEBUG, "store", "nothing");
    assert_string_equal(written(), "");
}

static void nothing_in_a_message_breaks_its_line(void **state)
{
    (void)state;
    log_write(LOG_INFO, "x", "%s", "a\r\n{\"time\":0}\x1b[31m\x7f\t\\");
    assert_line("message", "a\r\n{\"time\":0}\x1b[31m\x7f\t\\");
    log_write(LOG_INFO, "x", "%s",
              "a\x80z \xc3( \xed\xa0\x80 \xc2\x9b"
              "31m é 😀");
    assert_line("message", "a?z ?( ??? ??31m é 😀");
}

static void tokens_are_cut_to_their_prefix(void **state)
{
    (void)state;
    log_write(LOG_INFO, "x", "token=%s&x %s. %s xox-1 xoxB-1", "xoxb-12-aB_c", "xapp-A1-b",
              "xoxp-");
    assert_line("message", "token=xoxb-***&x xapp-***. xoxp-*** xox-1 xoxB-1");
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    log_write(LOG_INFO, "x", "%5000d", 1);
    char *text = written();
    assert_in_range(strlen(text), 1000, 4096);
    assert_string_equal(text + strlen(text) - 3, "\"}\n");
}

static const struct log_access access_example = {
    .request_id = "R1",
    .verb = "POST",
    .method = "/api/xoxp-secret\n",
    .user = "U1",
    .error = "",
    .status = 200,
    .duration_us = 123,
    .reply_bytes = 456,
};

static void access_lines_wait_for_the_flush(void **state)
{
    (void)state;
    log_access(&access_example);
    assert_string_equal(written(), "");
    log_flush();
    assert_line("method", "/api/xoxp-***\n");
}

static void the_access_log_can_be_off(void **state)
{
    (void)state;
    log_access_enable(false);
    log_access(&access_example);
    log_flush();
    assert_string_equal(written(), "");
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

// A reader that does not read: the writer goes on, counts what it drops, and never leaves half a
// line.
static void a_reader_that_stops_costs_lines_not_time(void **state)
{
    (void)state;
    enum { LINES = 5000 };
    int64_t dropped_before = metric_value(METRIC_LOG_DROPPED);
    for (int i = 0; i < LINES; i++) {
        log_access(&access_example);
        if (i % 10 == 0)
            log_flush();
    }
    int lines = 0;
    for (;;) {
        const char *text = written();
        if (text[0] == '\0')
            break;
        assert_int_equal(text[strlen(text) - 1], '\n');
        lines += count_lines(text);
        log_flush();
    }
    int64_t dropped = metric_value(METRIC_LOG_DROPPED) - dropped_before;
    assert_true(dropped > 0);
    assert_int_equal(lines + dropped, LINES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void what_lasts_is_told_at_first_and_once_a_minute(void **state)
{
    int64_t logged_ms = 0;

    (void)state;
    assert_true(log_is_due(&logged_ms));
    assert_false(log_is_due(&logged_ms));
    logged_ms -= 59000;
    assert_false(log_is_due(&logged_ms));
    logged_ms -= 1000;
    assert_true(log_is_due(&logged_ms));
    assert_false(log_is_due(&logged_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_is_one_json_object),
        TEST(levels_below_the_least_are_not_written),
        TEST(nothing_in_a_message_breaks_its_line),
        TEST(tokens_are_cut_to_their_prefix),
        TEST(long_messages_are_cut),
        TEST(access_lines_wait_for_the_flush),
        TEST(the_access_log_can_be_off),
        TEST(a_reader_that_stops_costs_lines_not_time),
        TEST(what_lasts_is_told_at_first_and_once_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
