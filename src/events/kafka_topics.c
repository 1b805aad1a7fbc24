// SPDX-License-Identifier: Apache-2.0
// Creates missing topics.
#include "kafka_topics.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "kafka_conf.h"

enum {
    PARTITIONS = 8,
    DEAD_PARTITIONS = 1,
    METADATA_TIMEOUT_MS = 1000,
    REQUEST_TIMEOUT_MS = 2000,
    TOPICS = 2
};

static rd_kafka_NewTopic_t *topic_new(const char *name, int partitions, int replication)
{
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, replication, NULL, 0);
    rd_kafka_NewTopic_set_config(topic, "max.message.bytes", KAFKA_RECORD_MAX);
    return topic;
}

// Whether we can continue: the topic exists, or only an administrator can create it.
static bool topic_is_settled(rd_kafka_resp_err_t error, const char *name, const char *reason)
{
    switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        log_write(LOG_INFO, "events", "created Kafka topic %s", name);
        return true;
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
        return true;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
        log_write(LOG_WARN, "events", "cannot create Kafka topic %s, create it manually: %s", name,
                  reason ? reason : rd_kafka_err2str(error));
        return true;
    default:
        log_write(LOG_WARN, "events", "Kafka topic %s: %s", name,
                  reason ? reason : rd_kafka_err2str(error));
        return false;
    }
}

static int answers_check(rd_kafka_event_t *event, int *replication)
{
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
        log_write(LOG_WARN, "events", "Kafka topics: %s", rd_kafka_event_error_string(event));
        return -ERROR_UNAVAILABLE;
    }
    size_t count;
    const rd_kafka_topic_result_t **answers =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    int r = 0;
    for (size_t i = 0; i < count; i++) {
        error = rd_kafka_topic_result_error(answers[i]);
        if (error == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR ||
            error == RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION)
            *replication = 1;
        if (!topic_is_settled(error, rd_kafka_topic_result_name(answers[i]),
                              rd_kafka_topic_result_error_string(answers[i])))
            r = -ERROR_UNAVAILABLE;
    }
    return r;
}

static int topics_request(rd_kafka_t *client, rd_kafka_NewTopic_t **topics, size_t count,
                          int *replication)
{
    char reason[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    (void)rd_kafka_AdminOptions_set_request_timeout(options, REQUEST_TIMEOUT_MS, reason,
                                                    sizeof reason);
    rd_kafka_CreateTopics(client, topics, count, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 2 * REQUEST_TIMEOUT_MS);
    int r = event ? answers_check(event, replication) : -ERROR_UNAVAILABLE;
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return r;
}

static bool is_listed(const struct rd_kafka_metadata *metadata, const char *topic)
{
    for (int i = 0; i < metadata->topic_cnt; i++)
        if (strcmp(metadata->topics[i].topic, topic) == 0)
            return true;
    return false;
}

int kafka_topics_create(rd_kafka_t *client, const char *topic, const char *dead_topic,
                        int *replication)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_NewTopic_t *topics[TOPICS];
    size_t count = 0;
    // Lists all topics: asking for a missing one could make the broker create it with its defaults.
    if (rd_kafka_metadata(client, 1, NULL, &metadata, METADATA_TIMEOUT_MS) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return -ERROR_UNAVAILABLE;
    if (!is_listed(metadata, topic))
        topics[count++] = topic_new(topic, PARTITIONS, *replication);
    if (!is_listed(metadata, dead_topic))
        topics[count++] = topic_new(dead_topic, DEAD_PARTITIONS, *replication);
    rd_kafka_metadata_destroy(metadata);
    int r = count > 0 ? topics_request(client, topics, count, replication) : 0;
    rd_kafka_NewTopic_destroy_array(topics, count);
    return r;
}
