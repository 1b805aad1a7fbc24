// SPDX-License-Identifier: Apache-2.0
// The Kafka producer shared by all threads.
#include "kafka_producer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "kafka_conf.h"
#include "kafka_topics.h"

enum {
    POLL_MS = 100,
    RETRY_MS = 500,
    METADATA_TIMEOUT_MS = 2000,
    PURGE_MS = 3000,
    STUCK_MS = 5000, // maximum time without a delivery while records wait
    DEAD_LETTER_MS = 10000
};

struct kafka_producer {
    uint32_t tag;
    struct kafka_producer_options options;
    pthread_t thread;
    // Replaced under the write lock; senders use it under the read lock.
    pthread_rwlock_t client_lock;
    rd_kafka_t *client;      // NULL while it is being replaced
    rd_kafka_topic_t *topic; // NULL until the topics exist
    pthread_mutex_t lock;
    pthread_cond_t changed; // of has_topics and burials
    bool has_topics;
    atomic_bool ready;
    atomic_bool stopped;
    atomic_bool refused; // whether a send has failed since the last check
    // Only for the producer's thread:
    struct kafka_delivery warmup;
    int warmups_left;
    int replication;
    bool reported; // whether a record was delivered since the last check
    int64_t looked_ms;
};

// The result passed to the sender. A record too large for the broker counts as delivered: no retry
// could succeed, and readers find the gap in the seqs and fill it from Postgres.
static int report_result(rd_kafka_resp_err_t error)
{
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    if (error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
        log_write(LOG_WARN, "events", "too large for Kafka, skipped");
        metric_add(METRIC_EVENTS_POISON, 1);
        return 0;
    }
    metric_add(METRIC_KAFKA_ERRORS, 1);
    return -ERROR_UNAVAILABLE;
}

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *record, void *arg)
{
    (void)client;
    struct kafka_producer *producer = CAST(kafka_producer, arg);
    struct kafka_delivery *delivery = CAST(kafka_delivery, record->_private);
    producer->reported = producer->reported || record->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    delivery->done(delivery, report_result(record->err));
}

// Opens the topic; call once it exists. Opening a missing topic could make the broker create it
// with its defaults.
static void topic_open(struct kafka_producer *producer)
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(producer->client, producer->options.topic, NULL);
    pthread_rwlock_wrlock(&producer->client_lock);
    producer->topic = topic;
    pthread_rwlock_unlock(&producer->client_lock);
}

static rd_kafka_conf_t *client_conf(const struct kafka_producer_options *options)
{
    char records[KAFKA_NUMBER_SIZE];
    char kbytes[KAFKA_NUMBER_SIZE];
    const struct kafka_setting settings[] = {
        {"enable.idempotence", "true"},
        {"acks", "all"},
        // see docs/decisions/2026-11-22-kafka-linger.md
        {"linger.ms", "2"},
        {"message.timeout.ms", "120000"},
        {"message.max.bytes", KAFKA_RECORD_MAX},
        {"queue.buffering.max.messages", records},
        {"queue.buffering.max.kbytes", kbytes},
        {0},
    };
    snprintf(records, sizeof records, "%d", options->queue_max);
    kafka_print_kbytes(options->queue_bytes, kbytes);
    return kafka_conf_new(options->brokers, settings);
}

static int client_open(struct kafka_producer *producer)
{
    rd_kafka_conf_t *conf = client_conf(&producer->options);
    if (!conf)
        return -ERROR_INTERNAL;
    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_t *client = kafka_client_new(RD_KAFKA_PRODUCER, conf);
    if (!client)
        return -ERROR_INTERNAL;
    pthread_rwlock_wrlock(&producer->client_lock);
    producer->client = client;
    pthread_rwlock_unlock(&producer->client_lock);
    return 0;
}

// Withdraws the client from senders, has all its records reported, and destroys it.
static void client_close(struct kafka_producer *producer)
{
    pthread_rwlock_wrlock(&producer->client_lock);
    rd_kafka_t *client = TAKE(producer->client);
    rd_kafka_topic_t *topic = TAKE(producer->topic);
    pthread_rwlock_unlock(&producer->client_lock);
    if (!client)
        return;
    (void)rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    int64_t until_ms = clock_monotonic_ms() + PURGE_MS;
    while (rd_kafka_outq_len(client) > 0 && clock_monotonic_ms() < until_ms)
        (void)rd_kafka_poll(client, POLL_MS);
    if (topic)
        rd_kafka_topic_destroy(topic);
    kafka_client_destroy(client);
}

static bool client_is_broken(const struct kafka_producer *producer)
{
    char reason[256];
    rd_kafka_resp_err_t error = rd_kafka_fatal_error(producer->client, reason, sizeof reason);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    log_write(LOG_ERROR, "events", "recreated the Kafka producer: %s", reason);
    return true;
}

// Serves delivery reports for `duration_ms`, or until the producer is stopped. Replaces a client
// with a fatal error.
static void client_serve(struct kafka_producer *producer, int64_t duration_ms)
{
    int64_t until_ms = clock_monotonic_ms() + duration_ms;
    while (!producer->stopped && clock_monotonic_ms() < until_ms)
        (void)rd_kafka_poll(producer->client, POLL_MS);
    if (!client_is_broken(producer))
        return;
    client_close(producer);
    while (client_open(producer) < 0)
        (void)usleep(RETRY_MS * 1000);
    if (producer->has_topics)
        topic_open(producer);
}

static void on_warmup(struct kafka_delivery *delivery, int r)
{
    struct kafka_producer *producer = LIST_ITEM(delivery, struct kafka_producer, warmup);
    if (r == 0)
        producer->warmups_left--;
}

static int partitions_count(struct kafka_producer *producer)
{
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(producer->client, 0, producer->topic, &metadata, METADATA_TIMEOUT_MS) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return -ERROR_UNAVAILABLE;
    int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    return count > 0 ? count : -ERROR_UNAVAILABLE;
}

// The first send of an idempotent producer takes up to a second (producer id, metadata,
// connection). So a warm-up record is sent to each partition, as each may have its own broker.
static bool client_warm_up(struct kafka_producer *producer)
{
    int count = partitions_count(producer);
    producer->warmups_left = count < 0 ? 1 : count;
    for (int32_t partition = 0; partition < count; partition++)
        (void)rd_kafka_produce(producer->topic, partition, RD_KAFKA_MSG_F_COPY, NULL, 0,
                               KAFKA_WARMUP_KEY, strlen(KAFKA_WARMUP_KEY), &producer->warmup);
    int64_t until_ms = clock_monotonic_ms() + PURGE_MS;
    while (count > 0 && producer->warmups_left > 0 && !producer->stopped &&
           clock_monotonic_ms() < until_ms)
        (void)rd_kafka_poll(producer->client, POLL_MS);
    return producer->warmups_left <= 0;
}

static int topics_create(struct kafka_producer *producer)
{
    return kafka_topics_create(producer->client, producer->options.topic,
                               producer->options.dead_topic, &producer->replication);
}

// If nothing has been delivered for some time, the topics may be gone, lost with Kafka's disk or
// deleted by mistake. Creates them again: not every broker does so itself.
static void topics_refresh(struct kafka_producer *producer)
{
    int64_t now_ms = clock_monotonic_ms();
    bool is_stuck =
        !producer->reported && (producer->refused || rd_kafka_outq_len(producer->client) > 0);
    if (is_stuck && now_ms - producer->looked_ms < STUCK_MS)
        return;
    if (is_stuck)
        (void)topics_create(producer);
    producer->reported = false;
    producer->refused = false;
    producer->looked_ms = now_ms;
}

static void producer_prepare(struct kafka_producer *producer)
{
    while (!producer->stopped && topics_create(producer) < 0)
        client_serve(producer, RETRY_MS);
    topic_open(producer);
    pthread_mutex_lock(&producer->lock);
    producer->has_topics = true;
    pthread_cond_broadcast(&producer->changed);
    pthread_mutex_unlock(&producer->lock);
    while (!producer->stopped && !client_warm_up(producer))
        client_serve(producer, RETRY_MS);
    producer->ready = !producer->stopped;
}

static void *producer_run(void *arg)
{
    struct kafka_producer *producer = CAST(kafka_producer, arg);
    producer_prepare(producer);
    while (!producer->stopped) {
        client_serve(producer, POLL_MS);
        topics_refresh(producer);
    }
    client_close(producer);
    return NULL;
}

static void producer_done(struct kafka_producer *producer)
{
    pthread_rwlock_destroy(&producer->client_lock);
    pthread_cond_destroy(&producer->changed);
    pthread_mutex_destroy(&producer->lock);
    TAGGED_FREE(producer);
}

int kafka_producer_new(const struct kafka_producer_options *options,
                       struct kafka_producer **ret_producer)
{
    struct kafka_producer *producer = memory_must_new(sizeof *producer);
    producer->tag = TAG(kafka_producer);
    producer->options = *options;
    producer->warmup = (struct kafka_delivery){TAG(kafka_delivery), on_warmup};
    producer->replication = KAFKA_REPLICATION_DEFAULT;
    pthread_rwlock_init(&producer->client_lock, NULL);
    pthread_mutex_init(&producer->lock, NULL);
    pthread_cond_init(&producer->changed, NULL);
    int r = client_open(producer);
    if (r == 0 && pthread_create(&producer->thread, NULL, producer_run, producer) != 0) {
        client_close(producer);
        r = -ERROR_MEMORY;
    }
    if (r < 0) {
        producer_done(producer);
        return r;
    }
    *ret_producer = producer;
    return 0;
}

void kafka_producer_stop(struct kafka_producer *producer)
{
    if (atomic_exchange(&producer->stopped, true))
        return;
    pthread_join(producer->thread, NULL);
}

void kafka_producer_free(struct kafka_producer *producer)
{
    if (producer)
        producer_done(producer);
}

bool kafka_producer_is_ready(const struct kafka_producer *producer)
{
    return producer->ready;
}

bool kafka_producer_wait_topics(struct kafka_producer *producer, int64_t timeout_ms)
{
    int64_t until_ms = clock_monotonic_ms() + timeout_ms;
    pthread_mutex_lock(&producer->lock);
    while (!producer->has_topics)
        if (!wait_until(&producer->changed, &producer->lock, until_ms))
            break;
    bool has_topics = producer->has_topics;
    pthread_mutex_unlock(&producer->lock);
    return has_topics;
}

int kafka_producer_send(struct kafka_producer *producer, const char *key, char *value,
                        size_t length, struct kafka_delivery *delivery)
{
    ASSERT(key && value && delivery->tag == TAG(kafka_delivery) && delivery->done);
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__QUEUE_FULL;
    pthread_rwlock_rdlock(&producer->client_lock);
    if (producer->topic &&
        rd_kafka_produce(producer->topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_FREE, value, length,
                         key, strlen(key), delivery) == 0)
        error = RD_KAFKA_RESP_ERR_NO_ERROR;
    else if (producer->topic)
        error = rd_kafka_last_error();
    pthread_rwlock_unlock(&producer->client_lock);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    if (report_result(error) < 0) {
        producer->refused = true;
        return -ERROR_BUSY;
    }
    free(value);
    delivery->done(delivery, 0);
    return 0;
}

// Shared by the waiting thread and the producer's thread, which reports. The last of the two frees
// it.
struct dead_letter {
    struct kafka_delivery delivery;
    struct kafka_producer *producer;
    int r; // 1 until reported
    int holders;
};

static void dead_letter_release(struct dead_letter *dead_letter)
{
    struct kafka_producer *producer = dead_letter->producer;
    bool last = --dead_letter->holders == 0;
    pthread_mutex_unlock(&producer->lock);
    if (!last)
        return;
    tag_clear(&dead_letter->delivery.tag);
    free(dead_letter);
}

static void on_dead_letter(struct kafka_delivery *delivery, int r)
{
    struct dead_letter *dead_letter = LIST_ITEM(delivery, struct dead_letter, delivery);
    pthread_mutex_lock(&dead_letter->producer->lock);
    dead_letter->r = r;
    pthread_cond_broadcast(&dead_letter->producer->changed);
    dead_letter_release(dead_letter);
}

static int dead_letter_send(struct kafka_producer *producer, const rd_kafka_message_t *record,
                            const char *reason, struct dead_letter *dead_letter)
{
    char from[320];
    snprintf(from, sizeof from, "%s/%d/%lld", producer->options.topic, (int)record->partition,
             (long long)record->offset);
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__QUEUE_FULL;
    pthread_rwlock_rdlock(&producer->client_lock);
    if (producer->client)
        error = rd_kafka_producev(
            producer->client, RD_KAFKA_V_TOPIC(producer->options.dead_topic),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record->key, record->key_len),
            RD_KAFKA_V_VALUE(record->payload, record->len), RD_KAFKA_V_HEADER("from", from, -1),
            RD_KAFKA_V_HEADER("error", reason, -1), RD_KAFKA_V_OPAQUE(dead_letter), RD_KAFKA_V_END);
    pthread_rwlock_unlock(&producer->client_lock);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -ERROR_BUSY;
}

int kafka_producer_dead_letter(struct kafka_producer *producer, const rd_kafka_message_t *record,
                               const char *reason)
{
    struct dead_letter *dead_letter = memory_must_new(sizeof *dead_letter);
    *dead_letter = (struct dead_letter){{TAG(kafka_delivery), on_dead_letter}, producer, 1, 2};
    int r = dead_letter_send(producer, record, reason, dead_letter);
    if (r < 0) {
        free(dead_letter);
        return r;
    }
    int64_t until_ms = clock_monotonic_ms() + DEAD_LETTER_MS;
    pthread_mutex_lock(&producer->lock);
    while (dead_letter->r > 0)
        if (!wait_until(&producer->changed, &producer->lock, until_ms))
            break;
    r = dead_letter->r > 0 ? -ERROR_UNAVAILABLE : dead_letter->r;
    dead_letter_release(dead_letter);
    return r;
}
