// SPDX-License-Identifier: Apache-2.0
// A thread that measures consumer lag, partition ends and dead letters.
#include "kafka_lag.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "kafka_conf.h"

enum {
    SAMPLE_MS = 1000,
    TIMEOUT_MS = 1000,
    SILENT_MS = 3000,      // maximum time without a reply
    DEAD_EVERY = 10,       // measurements
    PARTITIONS_EVERY = 60, // measurements; partitions may have been added
    // Workers commit their offsets every second. So what was in the log two measurements ago is
    // committed, unless the workers lag.
    SAMPLES = 2
};

struct partition {
    int64_t ends[SAMPLES]; // end offsets of earlier measurements, latest first
};

struct kafka_lag {
    uint32_t tag;
    struct kafka_lag_options options;
    rd_kafka_t *client; // a consumer that never subscribes
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; // guards `stopped`
    pthread_cond_t changed;
    bool stopped;
    _Atomic int64_t answered_ms;
    atomic_bool late;
    // Only for the thread:
    struct partition *partitions;
    int count;
    unsigned looks;
};

static rd_kafka_t *client_open(const struct kafka_lag_options *options)
{
    const struct kafka_setting settings[] = {
        {"group.id", options->group}, {"allow.auto.create.topics", "false"}, {0}};
    rd_kafka_conf_t *conf = kafka_conf_new(options->brokers, settings);
    return conf ? kafka_client_new(RD_KAFKA_CONSUMER, conf) : NULL;
}

static int partitions_read(struct kafka_lag *lag)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(lag->client, lag->options.topic, NULL);
    if (!topic)
        return -ERROR_UNAVAILABLE;
    rd_kafka_resp_err_t error = rd_kafka_metadata(lag->client, 0, topic, &metadata, TIMEOUT_MS);
    rd_kafka_topic_destroy(topic);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        return -ERROR_UNAVAILABLE;
    int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    if (count == lag->count)
        return 0;
    for (int i = count; i < lag->count; i++) {
        metric_series_clear(METRIC_SERIES_KAFKA_LAG, i);
        metric_series_clear(METRIC_SERIES_KAFKA_END, i);
    }
    free(lag->partitions);
    lag->partitions = count > 0 ? memory_must_new((size_t)count * sizeof *lag->partitions) : NULL;
    lag->count = count;
    return 0;
}

static rd_kafka_topic_partition_list_t *list_of(const char *topic, int count, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    for (int i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = offset;
    return list;
}

// The first or the next offset of each partition; `which` is RD_KAFKA_OFFSET_BEGINNING or
// RD_KAFKA_OFFSET_END. NULL if Kafka does not reply.
static rd_kafka_topic_partition_list_t *offsets_read(struct kafka_lag *lag, const char *topic,
                                                     int count, int64_t which)
{
    rd_kafka_topic_partition_list_t *list = list_of(topic, count, which);
    if (rd_kafka_offsets_for_times(lag->client, list, TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR)
        return list;
    rd_kafka_topic_partition_list_destroy(list);
    return NULL;
}

// The group's position in each partition: the committed offset, or the beginning if there is none.
static rd_kafka_topic_partition_list_t *committed_read(struct kafka_lag *lag)
{
    rd_kafka_topic_partition_list_t *list =
        list_of(lag->options.topic, lag->count, RD_KAFKA_OFFSET_INVALID);
    rd_kafka_topic_partition_list_t *first = NULL;
    if (rd_kafka_committed(lag->client, list, TIMEOUT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_topic_partition_list_destroy(list);
        return NULL;
    }
    for (int i = 0; i < list->cnt; i++) {
        if (list->elems[i].offset >= 0)
            continue;
        if (!first)
            first = offsets_read(lag, lag->options.topic, lag->count, RD_KAFKA_OFFSET_BEGINNING);
        list->elems[i].offset = first ? first->elems[i].offset : 0;
    }
    if (first)
        rd_kafka_topic_partition_list_destroy(first);
    return list;
}

// Whether the group has not yet reached the end offset of some measurements ago. False if the
// partition has been recreated since.
static bool partition_record(struct partition *partition, int index, int64_t end, int64_t committed)
{
    int64_t earlier = partition->ends[SAMPLES - 1];
    for (int i = SAMPLES - 1; i > 0; i--)
        partition->ends[i] = partition->ends[i - 1];
    partition->ends[0] = end;
    metric_series_set(METRIC_SERIES_KAFKA_LAG, index, end > committed ? end - committed : 0);
    metric_series_set(METRIC_SERIES_KAFKA_END, index, end);
    return committed < earlier && earlier <= end;
}

static int lag_read(struct kafka_lag *lag)
{
    rd_kafka_topic_partition_list_t *ends =
        offsets_read(lag, lag->options.topic, lag->count, RD_KAFKA_OFFSET_END);
    rd_kafka_topic_partition_list_t *committed = ends ? committed_read(lag) : NULL;
    bool late = false;
    for (int i = 0; committed && i < lag->count; i++)
        late |= partition_record(&lag->partitions[i], i, ends->elems[i].offset,
                                 committed->elems[i].offset);
    int r = committed ? 0 : -ERROR_UNAVAILABLE;
    if (committed) {
        lag->late = late;
        rd_kafka_topic_partition_list_destroy(committed);
    }
    if (ends)
        rd_kafka_topic_partition_list_destroy(ends);
    return r;
}

// The dead-letter topic has one partition. Not rd_kafka_query_watermark_offsets(): in librdkafka
// 2.0.2 it ignores its timeout and waits until a lost broker is back.
static void dead_read(struct kafka_lag *lag)
{
    rd_kafka_topic_partition_list_t *first =
        offsets_read(lag, lag->options.dead_topic, 1, RD_KAFKA_OFFSET_BEGINNING);
    rd_kafka_topic_partition_list_t *next =
        first ? offsets_read(lag, lag->options.dead_topic, 1, RD_KAFKA_OFFSET_END) : NULL;
    if (next) {
        metric_set(METRIC_DEAD_LETTERS, next->elems[0].offset - first->elems[0].offset);
        rd_kafka_topic_partition_list_destroy(next);
    }
    if (first)
        rd_kafka_topic_partition_list_destroy(first);
}

static void lag_measure(struct kafka_lag *lag)
{
    (void)rd_kafka_poll(lag->client, 0); // serves pending error callbacks
    // After asking for a missing topic, the client would not ask again for a long time.
    if (!kafka_producer_wait_topics(lag->options.producer, TIMEOUT_MS))
        return;
    int r = lag->count == 0 || lag->looks % PARTITIONS_EVERY == 0 ? partitions_read(lag) : 0;
    if (r < 0 || lag_read(lag) < 0)
        return;
    lag->answered_ms = clock_monotonic_ms();
    if (lag->looks++ % DEAD_EVERY == 0)
        dead_read(lag);
}

// False if the thread must stop.
static bool pause_for(struct kafka_lag *lag, int64_t pause_ms)
{
    int64_t until_ms = clock_monotonic_ms() + pause_ms;
    pthread_mutex_lock(&lag->lock);
    while (!lag->stopped && wait_until(&lag->changed, &lag->lock, until_ms))
        ;
    bool stopped = lag->stopped;
    pthread_mutex_unlock(&lag->lock);
    return !stopped;
}

static void *lag_run(void *arg)
{
    struct kafka_lag *lag = CAST(kafka_lag, arg);
    do
        lag_measure(lag);
    while (pause_for(lag, SAMPLE_MS));
    return NULL;
}

int kafka_lag_new(const struct kafka_lag_options *options, struct kafka_lag **ret_lag)
{
    struct kafka_lag *lag = memory_must_new(sizeof *lag);
    lag->tag = TAG(kafka_lag);
    lag->options = *options;
    lag->answered_ms = clock_monotonic_ms();
    pthread_mutex_init(&lag->lock, NULL);
    pthread_cond_init(&lag->changed, NULL);
    lag->client = client_open(options);
    int r = lag->client ? 0 : -ERROR_INTERNAL;
    if (r == 0 && pthread_create(&lag->thread, NULL, lag_run, lag) != 0)
        r = -ERROR_MEMORY;
    if (r < 0) {
        kafka_lag_free(lag);
        return r;
    }
    lag->started = true;
    *ret_lag = lag;
    return 0;
}

void kafka_lag_free(struct kafka_lag *lag)
{
    if (!lag)
        return;
    pthread_mutex_lock(&lag->lock);
    lag->stopped = true;
    pthread_cond_signal(&lag->changed);
    pthread_mutex_unlock(&lag->lock);
    if (lag->started)
        pthread_join(lag->thread, NULL);
    if (lag->client)
        kafka_client_destroy(lag->client);
    pthread_cond_destroy(&lag->changed);
    pthread_mutex_destroy(&lag->lock);
    free(lag->partitions);
    TAGGED_FREE(lag);
}

bool kafka_lag_answers(const struct kafka_lag *lag)
{
    return clock_monotonic_ms() - lag->answered_ms < SILENT_MS;
}

bool kafka_lag_is_behind(const struct kafka_lag *lag)
{
    return lag->late || !kafka_lag_answers(lag);
}
