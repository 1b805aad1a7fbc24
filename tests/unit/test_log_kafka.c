// SPDX-License-Identifier: Apache-2.0
// The log in Kafka against the broker that librdkafka has for tests, within this process.
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
#include <time.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "wait_for.h"

enum {
    PARTITIONS = 4,
    READ_MAX = 64,
    POSTS = 500,
    CHANNELS = 5,
    LETTERS = 3,
    LIST_OFFSETS = 2, // a request's key in Kafka's protocol
    CUTS = 10,
    KAFKA_BYTES = 16 << 20,
    LARGE = KAFKA_BYTES / 4,
    READ_BYTES = 1 << 16
};

static const char topic[] = "tidings.test";
static const char dead_topic[] = "tidings.test.dead";

// librdkafka is not built for ThreadSanitizer, which sees only half of its locking.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:librdkafka.so\n";
}

static rd_kafka_t *client; // a plain one that hosts the broker
static rd_kafka_mock_cluster_t *cluster;
static struct log *events_log;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done_well;
static int done_badly;

static void on_done(void *arg, const char *outbox_id, int r)
{
    (void)arg;
    assert_int_equal(strncmp(outbox_id, "row", 3), 0);
    pthread_mutex_lock(&lock);
    done_well += r == 0;
    done_badly += r < 0;
    pthread_mutex_unlock(&lock);
}

static int done_count(void)
{
    pthread_mutex_lock(&lock);
    int count = done_well + done_badly;
    pthread_mutex_unlock(&lock);
    return count;
}

static void broker_start(void)
{
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
    cluster = rd_kafka_mock_cluster_new(client, 1);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, topic, PARTITIONS, 1), 0);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, dead_topic, 1, 1), 0);
}

static int log_start_with(int64_t queue_bytes)
{
    const char *brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    const struct log_options options = {.brokers = brokers,
                                        .topic = topic,
                                        .group = "test",
                                        .workers = 1,
                                        .queue_max = 1000,
                                        .queue_bytes = queue_bytes,
                                        .read_bytes = READ_BYTES,
                                        .kafka_queue_bytes = KAFKA_BYTES,
                                        .kafka_fetch_bytes = 1 << 20};
    done_well = done_badly = 0;
    assert_int_equal(log_new(&options, on_done, NULL, &events_log), 0);
    WAIT_FOR(log_is_ready(events_log));
    return 0;
}

static int log_start(void)
{
    return log_start_with(1 << 20);
}

static int start(void **state)
{
    (void)state;
    broker_start();
    return log_start();
}

static int start_with_room_for_more_than_kafkas_client(void **state)
{
    (void)state;
    broker_start();
    return log_start_with(4 * KAFKA_BYTES);
}

static void log_end(int64_t flush_ms)
{
    log_stop(events_log, flush_ms);
    log_free(events_log);
    events_log = NULL;
}

static int stop(void **state)
{
    (void)state;
    if (events_log)
        log_end(0);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(client);
    return 0;
}

static int append(int number, int channel, int64_t seq, size_t copies)
{
    char id[OUTBOX_ID_SIZE];
    struct event *event = event_new(EVENT_POST, strdup("{\"text\":\"hi\"}"), 13);
    struct event *events[2000];
    (void)snprintf(id, sizeof id, "row%d", number);
    (void)snprintf(event->workspace_id, sizeof event->workspace_id, "T0000000001");
    (void)snprintf(event->channel_id, sizeof event->channel_id, "C%010d", channel);
    (void)snprintf(event->user_id, sizeof event->user_id, "U0000000001");
    event->seq = seq;
    for (size_t i = 0; i < 2000; i++)
        events[i] = event;
    int r = log_append(events_log, id, events, copies);
    event_unref(event);
    return r;
}

// A row of one event whose frame has `bytes` bytes.
static int append_bytes(size_t bytes)
{
    char *frame = malloc(bytes);
    assert_non_null(frame);
    memset(frame, 'x', bytes);
    memcpy(frame, "{\"text\":\"", 9);
    memcpy(frame + bytes - 2, "\"}", 2);
    struct event *event = event_new(EVENT_POST, frame, bytes);
    (void)snprintf(event->workspace_id, sizeof event->workspace_id, "T0000000001");
    (void)snprintf(event->channel_id, sizeof event->channel_id, "C0000000001");
    (void)snprintf(event->user_id, sizeof event->user_id, "U0000000001");
    event->seq = 1;
    int r = log_append(events_log, "row", &event, 1);
    event_unref(event);
    return r;
}

// Reads until `count` events came; each channel's must come in order, none twice.
static void read_in_order(int count)
{
    int64_t last[CHANNELS] = {0}, until_ms = clock_monotonic_ms() + WAIT_MS;
    struct event *events[READ_MAX];
    while (count > 0 && clock_monotonic_ms() < until_ms) {
        int got = log_read(events_log, 0, events, READ_MAX, 500);
        for (int i = 0; i < got; i++) {
            int64_t *seq = &last[strtol(events[i]->channel_id + 1, NULL, 10)];
            assert_int_equal(events[i]->seq, *seq + 1);
            assert_string_equal(events[i]->workspace_id, "T0000000001");
            *seq = events[i]->seq;
            event_unref(events[i]);
        }
        log_commit(events_log, 0);
        count -= got;
    }
    assert_int_equal(count, 0);
}

static void what_is_appended_is_delivered_and_read_in_order(void **state)
{
    (void)state;
    int64_t seq[CHANNELS] = {0};
    for (int i = 0; i < POSTS; i++)
        assert_int_equal(append(i, i % CHANNELS, ++seq[i % CHANNELS], 1), 0);
    read_in_order(POSTS);
    WAIT_FOR(done_count() == POSTS);
    assert_int_equal(done_well, POSTS);
}

static bool reads_and_is_not_behind(void)
{
    struct event *event;
    if (log_read(events_log, 0, &event, 1, 10) > 0)
        event_unref(event);
    log_commit(events_log, 0);
    return !log_is_behind(events_log);
}

static void workers_that_are_behind_show(void **state)
{
    (void)state;
    WAIT_FOR(reads_and_is_not_behind());
    assert_int_equal(append(0, 1, 1, 1), 0);
    WAIT_FOR(log_is_behind(events_log));
    assert_true(log_answers(events_log));
    WAIT_FOR(reads_and_is_not_behind());
}

static void a_row_is_answered_once_for_all_of_its_events(void **state)
{
    (void)state;
    int r = -ERROR_BUSY;
    assert_int_equal(append(1, 1, 1, 300), 0);
    WAIT_FOR(done_count() == 1);
    WAIT_FOR(r == 0 || (r = append(2, 1, 1, 1001)) == 0); // more than the bound: it goes alone
    WAIT_FOR(done_count() == 2);
    assert_int_equal(done_well, 2);
}

static void bytes_in_kafkas_client_are_bounded(void **state)
{
    enum { FIT = KAFKA_BYTES / LARGE - 1 }; // each record has a header, too
    (void)state;
    assert_int_equal(rd_kafka_mock_broker_set_down(cluster, 1), 0);
    for (int i = 0; i < FIT; i++)
        assert_int_equal(append_bytes(LARGE), 0);
    assert_int_equal(append_bytes(LARGE), -ERROR_BUSY);
    assert_int_equal(append_bytes(LARGE / 2), 0);
    assert_int_equal(rd_kafka_mock_broker_set_up(cluster, 1), 0);
    WAIT_FOR(done_count() == FIT + 1);
    assert_int_equal(done_well, FIT + 1);
    assert_int_equal(append_bytes(LARGE), 0);
}

static void what_is_read_together_is_bounded_in_bytes(void **state)
{
    enum { ROWS = 6 };
    (void)state;
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(append_bytes(READ_BYTES / 2), 0);
    WAIT_FOR(done_count() == ROWS);
    int64_t until_ms = clock_monotonic_ms() + WAIT_MS;
    for (int left = ROWS; left > 0;) {
        struct event *events[READ_MAX];
        int got = log_read(events_log, 0, events, READ_MAX, 500);
        assert_in_range(got, 0, 2);
        for (int i = 0; i < got; i++)
            event_unref(events[i]);
        log_commit(events_log, 0);
        left -= got;
        assert_true(left == 0 || clock_monotonic_ms() < until_ms);
    }
}

static void without_a_broker_nothing_blocks_and_nothing_is_lost(void **state)
{
    (void)state;
    assert_int_equal(rd_kafka_mock_broker_set_down(cluster, 1), 0);
    int64_t began_ms = clock_monotonic_ms();
    for (int i = 0; i < 1000; i++)
        assert_int_equal(append(i, 1, i + 1, 1), 0);
    assert_int_equal(append(1000, 1, 1001, 1), -ERROR_BUSY);
    assert_true(clock_monotonic_ms() - began_ms < 10000);
    assert_int_equal(done_count(), 0);
    assert_int_equal(rd_kafka_mock_broker_set_up(cluster, 1), 0);
    read_in_order(1000);
    WAIT_FOR(done_count() == 1000);
    assert_int_equal(done_well, 1000);
}

static void what_is_not_delivered_at_the_end_is_answered_so(void **state)
{
    (void)state;
    assert_int_equal(rd_kafka_mock_broker_set_down(cluster, 1), 0);
    assert_int_equal(append(1, 1, 1, 3), 0);
    log_end(10);
    assert_int_equal(done_badly, 1);
    assert_int_equal(done_well, 0);
    const struct log_options options = {.brokers = "127.0.0.1:1",
                                        .topic = topic,
                                        .group = "test",
                                        .workers = 1,
                                        .queue_max = 1,
                                        .queue_bytes = 1 << 20,
                                        .read_bytes = READ_BYTES,
                                        .kafka_queue_bytes = KAFKA_BYTES,
                                        .kafka_fetch_bytes = 1 << 20};
    assert_int_equal(log_new(&options, on_done, NULL, &events_log), 0);
    assert_false(log_is_ready(events_log));
}

static rd_kafka_t *open_writer(const char *brokers)
{
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", brokers, reason, sizeof reason);
    return rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
}

static void record_write(rd_kafka_t *writer, const char *to, const char *value)
{
    assert_int_equal(rd_kafka_producev(writer, RD_KAFKA_V_TOPIC(to), RD_KAFKA_V_PARTITION(0),
                                       RD_KAFKA_V_KEY("C0000000001", 11),
                                       RD_KAFKA_V_VALUE((void *)(uintptr_t)value, strlen(value)),
                                       RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
                     0);
    assert_int_equal(rd_kafka_flush(writer, WAIT_MS), 0);
}

static int start_with_letters(void **state)
{
    (void)state;
    broker_start();
    rd_kafka_t *writer = open_writer(rd_kafka_mock_cluster_bootstraps(cluster));
    for (int i = 0; i < LETTERS; i++)
        record_write(writer, dead_topic, "of an earlier day");
    rd_kafka_destroy(writer);
    metric_set(METRIC_DEAD_LETTERS, 0);
    return log_start();
}

static void dead_letters_are_counted(void **state)
{
    (void)state;
    WAIT_FOR(metric_value(METRIC_DEAD_LETTERS) == LETTERS);
}

// The first look at the topic asks for its ends and for its beginnings. What is asked next is about
// the dead letters: its connection is cut off, so that it is asked again.
static int start_with_letters_unanswered(void **state)
{
    (void)state;
    rd_kafka_resp_err_t errors[2 + CUTS] = {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_NO_ERROR};
    for (int i = 0; i < CUTS; i++)
        errors[2 + i] = RD_KAFKA_RESP_ERR__TRANSPORT;
    broker_start();
    rd_kafka_mock_push_request_errors_array(cluster, LIST_OFFSETS, 2 + CUTS, errors);
    for (int i = 0; i < PARTITIONS; i++)
        metric_series_clear(METRIC_SERIES_KAFKA_END, i);
    return log_start();
}

static bool ends_are_known(void)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    metrics_print(&b);
    CLEANUP_FREE char *text = buffer_take_text(&b);
    return strstr(text, "\ntidings_kafka_end_offset{partition=\"3\"}");
}

static void a_broker_that_goes_away_while_it_is_asked_does_not_hold_the_end_up(void **state)
{
    (void)state;
    WAIT_FOR(ends_are_known());
    assert_int_equal(rd_kafka_mock_broker_set_down(cluster, 1), 0);
    int64_t began_ms = clock_monotonic_ms();
    log_end(0);
    assert_true(clock_monotonic_ms() - began_ms < 20000);
}

// A consumer outside of any group, at the start of the dead letters.
static rd_kafka_t *open_dead_letters(const char *brokers)
{
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "group.id", "dead", reason, sizeof reason);
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", brokers, reason, sizeof reason);
    rd_kafka_t *reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason);
    rd_kafka_topic_partition_list_t *from = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(from, dead_topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    assert_int_equal(rd_kafka_assign(reader, from), 0);
    rd_kafka_topic_partition_list_destroy(from);
    return reader;
}

// Post `seq` in C0000000001, its header begun as given.
#define RECORD(start, seq)                                                                         \
    start ",\"workspace\":\"T0000000001\",\"channel\":\"C0000000001\",\"counted\":true,"           \
          "\"user\":\"U0000000001\",\"seq\":" seq ",\"event_ts\":\"1717200000.123456\","           \
          "\"ts\":\"1717200000.123456\",\"head\":{\"seq\":" seq ",\"ord\":1,\"strategy\":0,"       \
          "\"generation\":0},\"frame\":{}}"

static const struct {
    const char *record;
    const char *error; // NULL: it is an event
} records[] = {
    {"no event at all", "not in the form of an event: no JSON object"},
    {RECORD("{\"v\":2,\"kind\":\"post\"", "1"), "of a later version: v=2"},
    {RECORD("{\"v\":1,\"kind\":\"sparkle\"", "1"), "of an unknown kind: sparkle"},
    {RECORD("{\"more\":[], \"kind\":\"post\",\"v\":1", "1"), NULL},
    {RECORD("{\"v\":1,\"kind\":\"post\"", "0"), "not in the form of an event: seq"},
    {RECORD("{\"v\":1,\"kind\":\"post\",\"more\":2", "2"), NULL},
};
enum { RECORDS = sizeof records / sizeof *records, RECORDS_GOOD = 2 };

static void records_write(const char *brokers)
{
    rd_kafka_t *writer = open_writer(brokers);
    for (int i = 0; i < RECORDS; i++)
        record_write(writer, topic, records[i].record);
    rd_kafka_destroy(writer);
}

static void assert_letter(rd_kafka_message_t *letter, const char *record, const char *error)
{
    rd_kafka_headers_t *headers = NULL;
    const void *value = NULL;
    size_t length = 0;
    assert_non_null(letter);
    assert_int_equal(letter->err, 0);
    assert_int_equal(letter->len, strlen(record));
    assert_memory_equal(letter->payload, record, letter->len);
    assert_int_equal(rd_kafka_message_headers(letter, &headers), 0);
    assert_int_equal(rd_kafka_header_get_last(headers, "error", &value, &length), 0);
    assert_int_equal(length, strlen(error));
    assert_memory_equal(value, error, length);
    rd_kafka_message_destroy(letter);
}

static void what_is_not_understood_goes_to_the_dead_letters_and_holds_nothing_up(void **state)
{
    (void)state;
    const char *brokers = rd_kafka_mock_cluster_bootstraps(cluster);
    records_write(brokers);
    read_in_order(RECORDS_GOOD);
    rd_kafka_t *reader = open_dead_letters(brokers);
    for (int i = 0; i < RECORDS; i++)
        if (records[i].error)
            assert_letter(rd_kafka_consumer_poll(reader, WAIT_MS), records[i].record,
                          records[i].error);
    rd_kafka_destroy(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_appended_is_delivered_and_read_in_order, start,
                                        stop),
        cmocka_unit_test_setup_teardown(workers_that_are_behind_show, start, stop),
        cmocka_unit_test_setup_teardown(a_row_is_answered_once_for_all_of_its_events, start, stop),
        cmocka_unit_test_setup_teardown(what_is_read_together_is_bounded_in_bytes, start, stop),
        cmocka_unit_test_setup_teardown(bytes_in_kafkas_client_are_bounded,
                                        start_with_room_for_more_than_kafkas_client, stop),
        cmocka_unit_test_setup_teardown(without_a_broker_nothing_blocks_and_nothing_is_lost, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_is_not_delivered_at_the_end_is_answered_so, start,
                                        stop),
        cmocka_unit_test_setup_teardown(dead_letters_are_counted, start_with_letters, stop),
        cmocka_unit_test_setup_teardown(
            a_broker_that_goes_away_while_it_is_asked_does_not_hold_the_end_up,
            start_with_letters_unanswered, stop),
        cmocka_unit_test_setup_teardown(
            what_is_not_understood_goes_to_the_dead_letters_and_holds_nothing_up, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
