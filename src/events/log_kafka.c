// SPDX-License-Identifier: Apache-2.0
// The log in Kafka: one producer for all threads, one consumer per worker. A row is answered once
// Kafka has all its events. Events that a worker has read but not committed are read again, by it
// or by another member of the group.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/wait.h"
#include "event_log_internal.h"
#include "kafka_consumer.h"
#include "kafka_lag.h"
#include "kafka_producer.h"

// Kafka's client gets room for extra records: warm-ups, dead letters, and a row above the limit,
// which is accepted alone.
enum { EVENT_BYTES_MAX = 64 << 20, HEADER_ROOM = 1024, RECORDS_MORE = 200000 };

struct log_kafka {
    struct log log; // must be first
    uint32_t tag;
    char *topic;
    char *dead_topic;
    char *brokers;
    char *group;
    struct kafka_producer *producer;
    struct kafka_lag *lag;
    size_t held_max;
    atomic_size_t held; // events appended and not yet reported
    size_t held_bytes_max;
    atomic_size_t held_bytes; // frame bytes of rows not yet completely reported
    pthread_mutex_t lock;
    pthread_cond_t drained;
    int consumer_count;
    struct kafka_consumer *consumers[];
};

// An outbox row until Kafka has all its events.
struct kafka_row {
    struct kafka_delivery delivery; // must be first; shared by all events of the row
    struct log_kafka *kafka;
    atomic_size_t left; // events not yet reported, plus one while appending
    atomic_bool failed;
    size_t bytes;
    char id[OUTBOX_ID_SIZE];
};

static struct log_kafka *kafka_of(struct log *log)
{
    return CAST(log_kafka, log);
}

// Releases `count` events. Wakes waiters when none are left.
static void kafka_release(struct log_kafka *kafka, size_t count)
{
    if (atomic_fetch_sub(&kafka->held, count) != count)
        return;
    pthread_mutex_lock(&kafka->lock);
    pthread_cond_broadcast(&kafka->drained);
    pthread_mutex_unlock(&kafka->lock);
}

static void row_release(struct kafka_row *row, size_t count)
{
    if (atomic_fetch_sub(&row->left, count) != count)
        return;
    struct log *log = &row->kafka->log;
    log->done(log->arg, row->id, row->failed ? -ERROR_UNAVAILABLE : 0);
    atomic_fetch_sub(&row->kafka->held_bytes, row->bytes);
    tag_clear(&row->delivery.tag);
    free(row);
}

static void on_delivered(struct kafka_delivery *delivery, int r)
{
    struct kafka_row *row = LIST_ITEM(delivery, struct kafka_row, delivery);
    struct log_kafka *kafka = row->kafka;
    if (r < 0)
        row->failed = true;
    row_release(row, 1);
    kafka_release(kafka, 1);
}

static int event_send(struct log_kafka *kafka, const struct event *event, struct kafka_row *row)
{
    struct buffer value;
    buffer_init(&value, EVENT_BYTES_MAX);
    (void)buffer_reserve(&value, event->frame_length + HEADER_ROOM);
    event_encode(event, &value);
    int r = -ERROR_MEMORY;
    if (!buffer_failed(&value))
        r = kafka_producer_send(kafka->producer, event->channel_id, value.data, value.length,
                                &row->delivery);
    if (r < 0)
        buffer_done(&value);
    return r;
}

// Reserves room for `count` events of `bytes`. A row above the limits is accepted if nothing else
// is held.
static bool kafka_take(struct log_kafka *kafka, size_t count, size_t bytes)
{
    size_t held = atomic_fetch_add(&kafka->held, count);
    size_t held_bytes = atomic_fetch_add(&kafka->held_bytes, bytes);
    if (held == 0 ||
        (held + count <= kafka->held_max && held_bytes + bytes <= kafka->held_bytes_max))
        return true;
    atomic_fetch_sub(&kafka->held_bytes, bytes);
    kafka_release(kafka, count);
    return false;
}

static struct kafka_row *row_new(struct log_kafka *kafka, const char *outbox_id, size_t count,
                                 size_t bytes)
{
    struct kafka_row *row = memory_must_new(sizeof *row);
    ASSERT(count > 0 && strlen(outbox_id) < OUTBOX_ID_SIZE);
    row->delivery = (struct kafka_delivery){TAG(kafka_delivery), on_delivered};
    row->kafka = kafka;
    row->left = count + 1;
    row->bytes = bytes;
    memcpy(row->id, outbox_id, strlen(outbox_id));
    return row;
}

static int kafka_append(struct log *log, const char *outbox_id, struct event *const *events,
                        size_t count)
{
    struct log_kafka *kafka = kafka_of(log);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += events[i]->frame_length;
    if (!kafka_take(kafka, count, bytes))
        return -ERROR_BUSY;
    struct kafka_row *row = row_new(kafka, outbox_id, count, bytes);
    size_t sent = 0;
    while (sent < count && event_send(kafka, events[sent], row) == 0)
        sent++;
    if (sent == 0) {
        free(row);
        atomic_fetch_sub(&kafka->held_bytes, bytes);
        kafka_release(kafka, count);
        return -ERROR_BUSY;
    }
    // Sent events cannot be recalled. The row stays in the outbox and is sent again as a whole.
    if (sent < count)
        row->failed = true;
    row_release(row, count - sent + 1);
    if (sent < count)
        kafka_release(kafka, count - sent);
    return 0;
}

static int kafka_read(struct log *log, int worker, struct event **ret_events, int max,
                      int64_t timeout_ms)
{
    return kafka_consumer_read(kafka_of(log)->consumers[worker], ret_events, max, timeout_ms);
}

static void kafka_commit(struct log *log, int worker)
{
    kafka_consumer_commit(kafka_of(log)->consumers[worker]);
}

static void kafka_stop(struct log *log, int64_t flush_ms)
{
    struct log_kafka *kafka = kafka_of(log);
    int64_t until_ms = clock_monotonic_ms() + flush_ms;
    pthread_mutex_lock(&kafka->lock);
    while (kafka->held > 0 && wait_until(&kafka->drained, &kafka->lock, until_ms))
        ;
    pthread_mutex_unlock(&kafka->lock);
    for (int i = 0; i < kafka->consumer_count; i++)
        kafka_consumer_stop(kafka->consumers[i]);
}

static void kafka_free(struct log *log)
{
    struct log_kafka *kafka = kafka_of(log);
    kafka_lag_free(kafka->lag);
    kafka_consumers_free(kafka->consumers, kafka->consumer_count);
    if (kafka->producer)
        kafka_producer_stop(kafka->producer);
    kafka_producer_free(kafka->producer);
    pthread_cond_destroy(&kafka->drained);
    pthread_mutex_destroy(&kafka->lock);
    free(kafka->brokers);
    free(kafka->topic);
    free(kafka->dead_topic);
    free(kafka->group);
    TAGGED_FREE(kafka);
}

static bool kafka_is_ready(const struct log *log)
{
    return kafka_producer_is_ready(CAST_CONST(log_kafka, log)->producer);
}

static bool kafka_answers(const struct log *log)
{
    return kafka_lag_answers(CAST_CONST(log_kafka, log)->lag);
}

static bool kafka_is_behind(const struct log *log)
{
    return kafka_lag_is_behind(CAST_CONST(log_kafka, log)->lag);
}

static const struct log_backend kafka_backend = {
    .stop = kafka_stop,
    .free = kafka_free,
    .is_ready = kafka_is_ready,
    .answers = kafka_answers,
    .is_behind = kafka_is_behind,
    .append = kafka_append,
    .read = kafka_read,
    .commit = kafka_commit,
};

static int kafka_open(struct log_kafka *kafka, const struct log_options *options)
{
    const struct kafka_producer_options producer = {.brokers = kafka->brokers,
                                                    .topic = kafka->topic,
                                                    .dead_topic = kafka->dead_topic,
                                                    .queue_max = options->queue_max + RECORDS_MORE,
                                                    .queue_bytes = options->kafka_queue_bytes};
    int r = kafka_producer_new(&producer, &kafka->producer);
    for (; r >= 0 && kafka->consumer_count < options->workers; kafka->consumer_count++) {
        r = kafka_consumer_new(options, kafka->producer, &kafka->consumers[kafka->consumer_count]);
        if (r < 0)
            break;
    }
    const struct kafka_lag_options lag = {.brokers = kafka->brokers,
                                          .topic = kafka->topic,
                                          .dead_topic = kafka->dead_topic,
                                          .group = kafka->group,
                                          .producer = kafka->producer};
    return r < 0 ? r : kafka_lag_new(&lag, &kafka->lag);
}

int log_kafka_new(const struct log_options *options, log_done_fn *fn, void *arg,
                  struct log **ret_log)
{
    size_t workers = (size_t)options->workers;
    struct log_kafka *kafka = memory_must_new(sizeof *kafka + workers * sizeof kafka->consumers[0]);
    kafka->tag = TAG(log_kafka);
    kafka->log = (struct log){.backend = &kafka_backend, .done = fn, .arg = arg};
    kafka->held_max = (size_t)options->queue_max;
    kafka->held_bytes_max = (size_t)options->queue_bytes;
    pthread_mutex_init(&kafka->lock, NULL);
    pthread_cond_init(&kafka->drained, NULL);
    kafka->brokers = strdup(options->brokers);
    kafka->topic = strdup(options->topic);
    kafka->group = strdup(options->group);
    int r = asprintf(&kafka->dead_topic, "%s.dead", options->topic) < 0 ? -ERROR_MEMORY : 0;
    if (r == 0)
        r = kafka_open(kafka, options);
    if (r < 0) {
        kafka_free(&kafka->log);
        return r;
    }
    *ret_log = &kafka->log;
    return 0;
}
