// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/metrics.h"

enum { PRINTED_MAX = 1 << 20, THREADS = 4, ROUNDS = 10000 };

static char *printed(void)
{
    struct buffer b;
    buffer_init(&b, PRINTED_MAX);
    metrics_print(&b);
    char *text = buffer_take_text(&b);
    assert_non_null(text);
    return text;
}

// `line` stands in what is printed as a line of its own, once.
static void assert_printed(const char *line)
{
    CLEANUP_FREE char *text = printed();
    char whole[256];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    const char *found = strstr(text, whole);
    if (!found)
        fail_msg("not printed: %s", line);
    assert_null(strstr(found + 1, whole));
}

static void counters_are_printed_with_their_labels(void **state)
{
    (void)state;
    metric_add(METRIC_MARKS, 41);
    metric_add(METRIC_MARKS, 1);
    metric_add(METRIC_SOCKETS_SLOW, 5);
    assert_int_equal(metric_value(METRIC_MARKS), 42);
    assert_printed("tidings_marks_total 42");
    assert_printed("# TYPE tidings_marks_total counter");
    assert_printed("tidings_sockets_closed_total{reason=\"slow\"} 5");
    assert_printed("# TYPE tidings_sockets_closed_total counter");
    assert_printed("# TYPE tidings_http_connections gauge");
}

static void requests_are_counted_by_method_and_error(void **state)
{
    (void)state;
    metric_request("api.test", "", 300);
    metric_request("api.test", "", 500);
    metric_request("api.test", "not_authed", 6000);
    metric_request("auth.test", "", 20000000);
    assert_printed("tidings_http_requests_total{method=\"api.test\",error=\"\"} 2");
    assert_printed("tidings_http_requests_total{method=\"api.test\",error=\"not_authed\"} 1");
    assert_printed("tidings_http_requests_total{method=\"auth.test\",error=\"\"} 1");
}

#define DURATION "tidings_http_request_duration_seconds"

static void durations_are_a_cumulative_histogram(void **state)
{
    (void)state;
    metric_request("users.info", "", 300);
    metric_request("users.info", "", 500);
    metric_request("users.info", "x", 501);
    metric_request("users.info", "", 20000000);
    assert_printed(DURATION "_bucket{method=\"users.info\",le=\"0.0005\"} 2");
    assert_printed(DURATION "_bucket{method=\"users.info\",le=\"0.001\"} 3");
    assert_printed(DURATION "_bucket{method=\"users.info\",le=\"10\"} 3");
    assert_printed(DURATION "_bucket{method=\"users.info\",le=\"+Inf\"} 4");
    assert_printed(DURATION "_sum{method=\"users.info\"} 20.001301");
    assert_printed(DURATION "_count{method=\"users.info\"} 4");
}

static void gauges_of_things_are_shown_while_they_are_there(void **state)
{
    (void)state;
    metric_series_set(METRIC_SERIES_KAFKA_LAG, 0, 0);
    metric_series_set(METRIC_SERIES_KAFKA_LAG, METRIC_SERIES_SIZE - 1, 7);
    metric_series_set(METRIC_SERIES_KAFKA_LAG, METRIC_SERIES_SIZE, 8);
    assert_printed("tidings_kafka_lag{partition=\"0\"} 0");
    assert_printed("tidings_kafka_lag{partition=\"1023\"} 7");
    metric_series_clear(METRIC_SERIES_KAFKA_LAG, 0);
    CLEANUP_FREE char *text = printed();
    assert_null(strstr(text, "tidings_kafka_lag{partition=\"0\"}"));
    assert_null(strstr(text, "tidings_kafka_lag{partition=\"1024\"}"));
}

static void times_are_a_histogram(void **state)
{
    (void)state;
    metric_time(METRIC_TIMES_DELIVERY, -5);
    metric_time(METRIC_TIMES_DELIVERY, 600000);
    metric_set(METRIC_DEAD_LETTERS, 3);
    assert_printed("# TYPE tidings_delivery_seconds histogram");
    assert_printed("tidings_delivery_seconds_bucket{le=\"0.5\"} 1");
    assert_printed("tidings_delivery_seconds_bucket{le=\"1\"} 2");
    assert_printed("tidings_delivery_seconds_bucket{le=\"+Inf\"} 2");
    assert_printed("tidings_delivery_seconds_sum 0.600000");
    assert_printed("tidings_delivery_seconds_count 2");
    assert_printed("tidings_dead_letters 3");
}

static void *count_requests(void *arg)
{
    static const char *const errors[] = {"", "a", "b", "c"};
    for (int i = 0; i < ROUNDS; i++)
        metric_request("threads.test", errors[i % 4], 1);
    return arg;
}

static void no_request_of_any_thread_is_lost(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_requests, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_printed("tidings_http_requests_total{method=\"threads.test\",error=\"a\"} 10000");
    assert_printed(DURATION "_count{method=\"threads.test\"} 40000");
}

// However many pairs there are, the table keeps its bound: what does not fit counts as other.
static void too_many_pairs_count_as_other(void **state)
{
    (void)state;
    static char names[2000][16];
    for (int i = 0; i < 2000; i++) {
        snprintf(names[i], sizeof names[i], "method%d", i);
        metric_request(names[i], "error", 1);
    }
    metric_request("method1999", "error", 1);
    CLEANUP_FREE char *text = printed();
    assert_non_null(strstr(text, "{method=\"other\",error=\"other\"}"));
    assert_null(strstr(text, "method1999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_printed_with_their_labels),
        cmocka_unit_test(requests_are_counted_by_method_and_error),
        cmocka_unit_test(durations_are_a_cumulative_histogram),
        cmocka_unit_test(gauges_of_things_are_shown_while_they_are_there),
        cmocka_unit_test(times_are_a_histogram),
        cmocka_unit_test(no_request_of_any_thread_is_lost),
        cmocka_unit_test(too_many_pairs_count_as_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
