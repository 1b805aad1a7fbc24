// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "events/event_log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 3, CHANNELS = 8, POSTS = 20000, READ_MAX = 64, WAIT_MS = 20000 };
enum { LONG = 1 << 20, LONGS_READ = 16, QUEUE_BYTES = 40 * LONG };

static struct log *events_log;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char answered[POSTS + 1][OUTBOX_ID_SIZE];
static int answers[POSTS + 1];
static int answered_count;

static void on_done(void *arg, const char *outbox_id, int r)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    (void)snprintf(answered[answered_count], OUTBOX_ID_SIZE, "%s", outbox_id);
    answers[answered_count++] = r;
    pthread_mutex_unlock(&lock);
}

static void open_log(int workers, int queue_max)
{
    const struct log_options options = {.workers = workers,
                                        .queue_max = queue_max,
                                        .queue_bytes = QUEUE_BYTES,
                                        .read_bytes = LONGS_READ * LONG};
    answered_count = 0;
    assert_int_equal(log_new(&options, on_done, NULL, &events_log), 0);
    assert_true(log_is_ready(events_log));
}

static void close_log(void)
{
    log_stop(events_log, 0);
    log_free(events_log);
}

static struct event *post(int channel, int64_t seq)
{
    struct event *event = event_new(EVENT_POST, strdup("{}"), 2);
    (void)snprintf(event->channel_id, sizeof event->channel_id, "C%010d", channel);
    event->seq = seq;
    return event;
}

static int append(const char *id, int channel, int64_t seq, size_t count)
{
    struct event *events[8] = {0};
    for (size_t i = 0; i < count; i++)
        events[i] = post(channel + (int)i, seq);
    int r = log_append(events_log, id, events, count);
    for (size_t i = 0; i < count; i++)
        event_unref(events[i]);
    return r;
}

static int read_all(int worker, int64_t timeout_ms)
{
    struct event *events[READ_MAX];
    int count = log_read(events_log, worker, events, READ_MAX, timeout_ms);
    for (int i = 0; i < count; i++)
        event_unref(events[i]);
    return count;
}

static void a_row_is_done_when_all_of_its_events_are(void **state)
{
    (void)state;
    int left = 8;
    open_log(WORKERS, 100);
    assert_int_equal(append("row", 0, 1, 8), 0);
    for (int worker = 0; worker < WORKERS; worker++) {
        left -= read_all(worker, 0);
        assert_int_equal(answered_count, 0);
        log_commit(events_log, worker);
        assert_int_equal(answered_count, left == 0);
    }
    assert_int_equal(left, 0);
    assert_string_equal(answered[0], "row");
    assert_int_equal(answers[0], 0);
    close_log();
}

static void a_commit_is_of_all_that_was_read(void **state)
{
    (void)state;
    open_log(1, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(append("row", 0, i + 1, 1), 0);
        assert_int_equal(read_all(0, 0), 1);
        assert_int_equal(read_all(0, 0), 0);
        assert_int_equal(answered_count, 0);
    }
    assert_int_equal(append("more", 0, 4, 1), -ERROR_BUSY);
    log_commit(events_log, 0);
    assert_int_equal(answered_count, 3);
    assert_int_equal(append("more", 0, 4, 3), 0);
    close_log();
}

static void more_than_the_bound_is_refused_until_some_is_committed(void **state)
{
    (void)state;
    open_log(1, 3);
    assert_int_equal(append("a", 0, 1, 2), 0);
    assert_int_equal(append("b", 0, 2, 2), -ERROR_BUSY);
    assert_int_equal(append("c", 0, 2, 1), 0);
    assert_int_equal(read_all(0, 0), 3);
    assert_int_equal(append("d", 0, 3, 1), -ERROR_BUSY);
    log_commit(events_log, 0);
    assert_int_equal(answered_count, 2);
    assert_int_equal(append("d", 0, 3, 3), 0);
    close_log();
}

static int append_bytes(const char *id, size_t bytes)
{
    struct event *event = event_new(EVENT_POST, calloc(1, bytes), bytes);
    assert_non_null(event);
    int r = log_append(events_log, id, &event, 1);
    event_unref(event);
    return r;
}

static void bytes_are_bounded_as_well(void **state)
{
    (void)state;
    open_log(1, 1000);
    assert_int_equal(append_bytes("a", QUEUE_BYTES - LONG), 0);
    assert_int_equal(append_bytes("b", LONG + 1), -ERROR_BUSY);
    assert_int_equal(append_bytes("b", LONG), 0);
    assert_int_equal(append_bytes("c", 1), -ERROR_BUSY);
    assert_int_equal(read_all(0, 0), 1);
    assert_int_equal(append_bytes("c", 1), -ERROR_BUSY);
    log_commit(events_log, 0);
    assert_int_equal(append_bytes("c", 1), 0);
    assert_int_equal(read_all(0, 0), 2);
    log_commit(events_log, 0);
    assert_int_equal(append_bytes("large", QUEUE_BYTES + 1), 0); // alone
    close_log();
}

static void a_row_of_more_than_the_bound_goes_alone(void **state)
{
    (void)state;
    open_log(1, 3);
    assert_int_equal(append("a", 0, 1, 1), 0);
    assert_int_equal(append("many", 0, 2, 8), -ERROR_BUSY);
    assert_int_equal(read_all(0, 0), 1);
    log_commit(events_log, 0);
    assert_int_equal(append("many", 0, 2, 8), 0);
    assert_int_equal(append("b", 0, 3, 1), -ERROR_BUSY);
    assert_int_equal(read_all(0, 0), 8);
    log_commit(events_log, 0);
    assert_int_equal(answered_count, 2);
    assert_int_equal(append("b", 0, 3, 1), 0);
    close_log();
}

static void what_is_read_together_is_bounded_in_bytes(void **state)
{
    (void)state;
    struct event *one = event_new(EVENT_POST, calloc(1, LONG), LONG);
    struct event *all[2 * LONGS_READ + 1];
    for (size_t i = 0; i < 2 * LONGS_READ + 1; i++)
        all[i] = one;
    open_log(1, POSTS);
    assert_int_equal(log_append(events_log, "long", all, 2 * LONGS_READ + 1), 0);
    event_unref(one);
    for (int left = 2 * LONGS_READ + 1; left > 0; left -= LONGS_READ) {
        assert_int_equal(answered_count, 0);
        assert_int_equal(read_all(0, 0), left < LONGS_READ ? left : LONGS_READ);
        log_commit(events_log, 0);
    }
    assert_int_equal(answered_count, 1);
    close_log();
}

static void what_is_left_at_the_end_is_answered_as_not_done(void **state)
{
    (void)state;
    open_log(1, 10);
    assert_int_equal(append("read", 0, 1, 1), 0);
    assert_int_equal(read_all(0, 0), 1);
    assert_int_equal(append("waiting", 0, 2, 1), 0);
    log_stop(events_log, 0);
    assert_int_equal(read_all(0, WAIT_MS), 0);
    assert_int_equal(append("late", 0, 3, 1), -ERROR_BUSY);
    log_free(events_log);
    assert_int_equal(answered_count, 2);
    assert_true(answers[0] < 0 && answers[1] < 0);
}

static void *drain(void *arg)
{
    while (read_all(0, WAIT_MS) > 0)
        log_commit(events_log, 0);
    return arg;
}

static void stopping_waits_for_what_was_appended(void **state)
{
    (void)state;
    pthread_t thread;
    open_log(1, 1000);
    for (int i = 0; i < 500; i++)
        assert_int_equal(append("row", 0, i + 1, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, drain, NULL), 0);
    log_stop(events_log, WAIT_MS);
    pthread_join(thread, NULL);
    assert_int_equal(answered_count, 500);
    log_free(events_log);
}

struct reader {
    pthread_t thread;
    int worker;
    int count;
    int64_t last[CHANNELS];
    bool in_order;
};

static void *read_in_order(void *arg)
{
    struct reader *reader = arg;
    struct event *events[READ_MAX];
    int count;
    while ((count = log_read(events_log, reader->worker, events, READ_MAX, WAIT_MS)) > 0) {
        for (int i = 0; i < count; i++) {
            int64_t *last = &reader->last[strtol(events[i]->channel_id + 1, NULL, 10)];
            reader->in_order = reader->in_order && events[i]->seq == *last + 1;
            *last = events[i]->seq;
            event_unref(events[i]);
        }
        reader->count += count;
        log_commit(events_log, reader->worker);
    }
    return NULL;
}

static void each_channel_keeps_its_order_at_one_worker(void **state)
{
    (void)state;
    struct reader readers[WORKERS] = {0};
    int64_t seq[CHANNELS] = {0};
    int count = 0;
    open_log(WORKERS, POSTS);
    for (int i = 0; i < WORKERS; i++) {
        readers[i].worker = i;
        readers[i].in_order = true;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_in_order, &readers[i]), 0);
    }
    for (int i = 0; i < POSTS; i++) {
        char id[OUTBOX_ID_SIZE];
        int channel = (i * 7 + i / 11) % CHANNELS;
        (void)snprintf(id, sizeof id, "row%d", i);
        assert_int_equal(append(id, channel, ++seq[channel], 1), 0);
    }
    log_stop(events_log, WAIT_MS);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_true(readers[i].in_order);
        count += readers[i].count;
    }
    assert_int_equal(count, POSTS);
    assert_int_equal(answered_count, POSTS);
    log_free(events_log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_done_when_all_of_its_events_are),
        cmocka_unit_test(a_commit_is_of_all_that_was_read),
        cmocka_unit_test(more_than_the_bound_is_refused_until_some_is_committed),
        cmocka_unit_test(bytes_are_bounded_as_well),
        cmocka_unit_test(a_row_of_more_than_the_bound_goes_alone),
        cmocka_unit_test(what_is_read_together_is_bounded_in_bytes),
        cmocka_unit_test(what_is_left_at_the_end_is_answered_as_not_done),
        cmocka_unit_test(stopping_waits_for_what_was_appended),
        cmocka_unit_test(each_channel_keeps_its_order_at_one_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
