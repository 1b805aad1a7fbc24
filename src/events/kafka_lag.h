// SPDX-License-Identifier: Apache-2.0
// A thread that asks Kafka every second how far its topic goes and how far the group has got with
// it, and sometimes how many dead letters there are: for metrics, and to know whether Kafka
// answers.
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "kafka_producer.h"

struct kafka_lag;

// The strings, and the producer, must outlive it.
struct kafka_lag_options {
    const char *brokers;
    const char *topic;
    const char *dead_topic;
    const char *group;
    struct kafka_producer *producer; // which makes the topics
};

NODISCARD int kafka_lag_new(const struct kafka_lag_options *options, struct kafka_lag **ret_lag);
void kafka_lag_free(struct kafka_lag *lag); // takes NULL

// Whether Kafka has answered within the last seconds. Any thread.
bool kafka_lag_answers(const struct kafka_lag *lag);

// Whether it does not, or the group has not got as far as the topic went some seconds ago. Any
// thread.
bool kafka_lag_is_behind(const struct kafka_lag *lag);
