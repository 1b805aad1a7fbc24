// SPDX-License-Identifier: Apache-2.0
// A Kafka consumer in the group: reads events, and commits offsets once their effects are applied.
#include "kafka_consumer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "kafka_conf.h"

enum { CLOSE_MS = 3000, TRIES = 3 };

struct kafka_consumer {
    uint32_t tag;
    struct kafka_producer *producer; // not owned
    rd_kafka_t *client;
    rd_kafka_queue_t *queue; // of the client; used to wake a blocked reader
    char *topic;
    size_t read_bytes;
    int64_t *next; // by partition: the offset after the last record read, if not stored yet, else 0
    int partitions;
    bool has_unconfirmed; // whether events were read since the last commit
    bool subscribed;
    bool closing; // whether the thread `closer` runs
    pthread_t closer;
    atomic_bool stopped;
};

// Settings that are not obvious: a group formed while its topic was missing has nothing to read
// until a member refreshes its metadata, by default after five minutes. With librdkafka 2.0.2 the
// assignor must be `range` (the cooperative one loses partitions), and the queue limit must exceed
// anything ever queued (at the limit, fetching pauses for a second).
static rd_kafka_t *client_open(const struct log_options *options)
{
    char ahead[KAFKA_NUMBER_SIZE];
    const struct kafka_setting settings[] = {
        {"group.id", options->group},
        {"enable.auto.offset.store", "false"},
        {"enable.auto.commit", "true"},
        {"auto.commit.interval.ms", "1000"},
        {"auto.offset.reset", "earliest"},
        {"partition.assignment.strategy", "range"},
        {"session.timeout.ms", "6000"},
        {"heartbeat.interval.ms", "1500"},
        {"fetch.wait.max.ms", "20"},
        {"fetch.error.backoff.ms", "50"},
        {"queued.max.messages.kbytes", ahead},
        {"allow.auto.create.topics", "false"},
        {"topic.metadata.refresh.interval.ms", "5000"},
        {0},
    };
    kafka_print_kbytes(options->kafka_fetch_bytes, ahead);
    rd_kafka_conf_t *conf = kafka_conf_new(options->brokers, settings);
    return conf ? kafka_client_new(RD_KAFKA_CONSUMER, conf) : NULL;
}

int kafka_consumer_new(const struct log_options *options, struct kafka_producer *producer,
                       struct kafka_consumer **ret_consumer)
{
    rd_kafka_t *client = client_open(options);
    if (!client)
        return -ERROR_INTERNAL;
    struct kafka_consumer *consumer = memory_must_new(sizeof *consumer);
    consumer->tag = TAG(kafka_consumer);
    (void)rd_kafka_poll_set_consumer(client);
    consumer->producer = producer;
    consumer->client = client;
    consumer->queue = rd_kafka_queue_get_consumer(client);
    consumer->topic = strdup(options->topic);
    consumer->read_bytes = (size_t)options->read_bytes;
    *ret_consumer = consumer;
    return 0;
}

// Unlike rd_kafka_consumer_close(), never waits forever for a lost partition.
static void client_close(rd_kafka_t *client, rd_kafka_queue_t *queue)
{
    int64_t until_ms = clock_monotonic_ms() + CLOSE_MS;
    rd_kafka_error_destroy(rd_kafka_consumer_close_queue(client, queue));
    while (!rd_kafka_consumer_closed(client) && clock_monotonic_ms() < until_ms)
        rd_kafka_event_destroy(rd_kafka_queue_poll(queue, 100));
    rd_kafka_queue_destroy(queue);
    kafka_client_destroy(client);
}

static void *close_run(void *arg)
{
    struct kafka_consumer *consumer = CAST(kafka_consumer, arg);
    client_close(consumer->client, consumer->queue);
    return NULL;
}

void kafka_consumers_free(struct kafka_consumer *const *consumers, int count)
{
    for (int i = 0; i < count; i++) {
        struct kafka_consumer *consumer = consumers[i];
        consumer->closing = pthread_create(&consumer->closer, NULL, close_run, consumer) == 0;
        if (!consumer->closing)
            close_run(consumer);
    }
    for (int i = 0; i < count; i++) {
        struct kafka_consumer *consumer = consumers[i];
        if (consumer->closing)
            pthread_join(consumer->closer, NULL);
        free(consumer->topic);
        free(consumer->next);
        TAGGED_FREE(consumer);
    }
}

static bool consumer_subscribe(struct kafka_consumer *consumer, int64_t timeout_ms)
{
    if (consumer->subscribed)
        return true;
    // After asking for a missing topic, the client would not ask again for a long time.
    if (!kafka_producer_wait_topics(consumer->producer, timeout_ms))
        return false;
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    (void)rd_kafka_topic_partition_list_add(topics, consumer->topic, RD_KAFKA_PARTITION_UA);
    consumer->subscribed =
        rd_kafka_subscribe(consumer->client, topics) == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_destroy(topics);
    return consumer->subscribed;
}

static void record_read(struct kafka_consumer *consumer, const rd_kafka_message_t *record)
{
    int partition = record->partition;
    if (partition >= consumer->partitions) {
        consumer->next =
            memory_must_resize(consumer->next, (size_t)partition + 1, sizeof *consumer->next);
        for (int i = consumer->partitions; i <= partition; i++)
            consumer->next[i] = 0;
        consumer->partitions = partition + 1;
    }
    consumer->next[partition] = record->offset + 1;
}

// Sends a record that this release cannot decode to the dead-letter topic. If that fails too, skips
// the record: it must not block those after it, and comparing heads reveals the missing event.
static void record_dead_letter(struct kafka_consumer *consumer, const rd_kafka_message_t *record,
                               const char *reason)
{
    metric_add(METRIC_EVENTS_POISON, 1);
    int r = -ERROR_UNAVAILABLE;
    for (int i = 0; i < TRIES && r < 0 && !consumer->stopped; i++)
        r = kafka_producer_dead_letter(consumer->producer, record, reason);
    log_write(LOG_ERROR, "events", "record %d/%lld is %s: %s", (int)record->partition,
              (long long)record->offset, reason, r < 0 ? "skipped" : "moved to the dead letters");
}

// The event of a record; NULL if it carries none.
static struct event *record_event(struct kafka_consumer *consumer, const rd_kafka_message_t *record)
{
    struct event *event = NULL;
    if (record->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        metric_add(METRIC_KAFKA_ERRORS, 1);
        log_write(LOG_WARN, "events", "reading from Kafka: %s", rd_kafka_message_errstr(record));
        return NULL;
    }
    record_read(consumer, record);
    if (!record->payload)
        return NULL;
    char reason[EVENT_REASON_SIZE];
    int r = -ERROR_MEMORY;
    for (int i = 0; i < TRIES && r == -ERROR_MEMORY; i++)
        r = event_decode(record->payload, record->len, &event, reason);
    if (r < 0)
        record_dead_letter(consumer, record, reason);
    return event;
}

int kafka_consumer_read(struct kafka_consumer *consumer, struct event **ret_events, int max,
                        int64_t timeout_ms)
{
    int count = 0;
    size_t bytes = 0;
    if (consumer->stopped || !consumer_subscribe(consumer, timeout_ms))
        return 0;
    // Waits for one record, then takes those available: waiting for many would always use up the
    // timeout.
    rd_kafka_message_t *record = rd_kafka_consumer_poll(consumer->client, (int)timeout_ms);
    while (record) {
        struct event *event = record_event(consumer, record);
        rd_kafka_message_destroy(record);
        if (event) {
            ret_events[count++] = event;
            bytes += event->frame_length;
        }
        if (count == max || bytes >= consumer->read_bytes || consumer->stopped)
            break;
        record = rd_kafka_consumer_poll(consumer->client, 0);
    }
    if (count > 0)
        consumer->has_unconfirmed = true;
    else if (!consumer->has_unconfirmed)
        kafka_consumer_commit(consumer); // only dead letters were read
    return count;
}

// The client's own thread commits stored offsets, every second and when partitions are revoked.
// Storing offsets of partitions revoked meanwhile fails, as it should.
void kafka_consumer_commit(struct kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *offsets = NULL;
    consumer->has_unconfirmed = false;
    for (int i = 0; i < consumer->partitions; i++) {
        if (consumer->next[i] == 0)
            continue;
        if (!offsets)
            offsets = rd_kafka_topic_partition_list_new(consumer->partitions);
        rd_kafka_topic_partition_list_add(offsets, consumer->topic, i)->offset = consumer->next[i];
        consumer->next[i] = 0;
    }
    if (!offsets)
        return;
    (void)rd_kafka_offsets_store(consumer->client, offsets);
    rd_kafka_topic_partition_list_destroy(offsets);
}

void kafka_consumer_stop(struct kafka_consumer *consumer)
{
    consumer->stopped = true;
    rd_kafka_queue_yield(consumer->queue);
}
