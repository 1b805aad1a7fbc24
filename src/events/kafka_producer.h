// SPDX-License-Identifier: Apache-2.0
// A log's only producer, and the thread that serves it. Creates the topics, warms up the producer,
// passes on delivery reports, and replaces the producer after a fatal error of librdkafka.
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct kafka_producer;

// Embedded by senders. `done` is called once per record, on the producer's thread, with 0 or
// -ERROR_UNAVAILABLE.
struct kafka_delivery {
    uint32_t tag;
    void (*done)(struct kafka_delivery *delivery, int r);
};

// The strings must outlive the producer.
struct kafka_producer_options {
    const char *brokers;
    const char *topic;
    const char *dead_topic;
    int queue_max;       // records not yet reported
    int64_t queue_bytes; // bytes of these records
};

NODISCARD int kafka_producer_new(const struct kafka_producer_options *options,
                                 struct kafka_producer **ret_producer);

// Stops the thread. Undelivered records are reported as -ERROR_UNAVAILABLE.
void kafka_producer_stop(struct kafka_producer *producer);
void kafka_producer_free(struct kafka_producer *producer); // after kafka_producer_stop()

// Whether the warm-up is done, so that sends are fast. Any thread.
bool kafka_producer_is_ready(const struct kafka_producer *producer);

// Waits at most `timeout_ms` until the topics exist. Any thread.
bool kafka_producer_wait_topics(struct kafka_producer *producer, int64_t timeout_ms);

// Sends a record. On success, takes over `value` (heap). -ERROR_BUSY: nothing is accepted now, and
// `done` is not called. Any thread; never blocks.
NODISCARD int kafka_producer_send(struct kafka_producer *producer, const char *key, char *value,
                                  size_t length, struct kafka_delivery *delivery);

// Sends a record that could not be decoded to the dead-letter topic and waits for delivery. Any
// thread except the producer's own.
NODISCARD int kafka_producer_dead_letter(struct kafka_producer *producer,
                                         const rd_kafka_message_t *record, const char *reason);
