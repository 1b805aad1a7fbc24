// SPDX-License-Identifier: Apache-2.0
// The one producer of a log, and the thread that serves it: makes the topics, warms the producer
// up, hands out delivery reports, and makes a new producer when librdkafka says that this one is
// beyond repair.
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct kafka_producer;

// Whoever sends embeds one of these; `done` is called once per record, on the producer's thread,
// with 0 or -ERROR_UNAVAILABLE.
struct kafka_delivery {
    void (*done)(struct kafka_delivery *delivery, int r);
};

// The strings must outlive the producer.
struct kafka_producer_options {
    const char *brokers;
    const char *topic;
    const char *dead_topic;
    int queue_max;       // records that wait to be sent, or to be reported
    int64_t queue_bytes; // of them
};

NODISCARD int kafka_producer_new(const struct kafka_producer_options *options,
                                 struct kafka_producer **ret_producer);

// Ends the thread; what was not delivered is answered -ERROR_UNAVAILABLE.
void kafka_producer_stop(struct kafka_producer *producer);
void kafka_producer_free(struct kafka_producer *producer); // after kafka_producer_stop()

// Warmed up: the next send is a quick one. Any thread.
bool kafka_producer_is_ready(const struct kafka_producer *producer);

// Waits until the topics are there, at most `timeout_ms`. Any thread.
bool kafka_producer_wait_topics(struct kafka_producer *producer, int64_t timeout_ms);

// Sends a record; takes `value` (heap) over when it succeeds. -ERROR_BUSY: nothing is taken now,
// `done` is not called. Any thread; never blocks.
NODISCARD int kafka_producer_send(struct kafka_producer *producer, const char *key, char *value,
                                  size_t length, struct kafka_delivery *delivery);

// Puts a record that was read but not understood into the dead-letter topic, and waits for that.
// Any thread but the producer's own.
NODISCARD int kafka_producer_bury(struct kafka_producer *producer, const rd_kafka_message_t *record,
                                  const char *reason);
