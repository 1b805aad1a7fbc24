// SPDX-License-Identifier: Apache-2.0
// A thread that asks Kafka every second for the ends of the topic's partitions and the group's
// offsets, and occasionally for the number of dead letters. For metrics and readiness.
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "kafka_producer.h"

struct kafka_lag;

// The strings and the producer must outlive the thread.
struct kafka_lag_options {
    const char *brokers;
    const char *topic;
    const char *dead_topic;
    const char *group;
    struct kafka_producer *producer; // creates the topics
};

NODISCARD int kafka_lag_new(const struct kafka_lag_options *options, struct kafka_lag **ret_lag);
void kafka_lag_free(struct kafka_lag *lag); // accepts NULL

// Whether Kafka has replied within the last seconds. Any thread.
bool kafka_lag_answers(const struct kafka_lag *lag);

// Whether Kafka does not reply, or the group has not yet reached where the topic ended some seconds
// ago. Any thread.
bool kafka_lag_is_behind(const struct kafka_lag *lag);
