// SPDX-License-Identifier: Apache-2.0
// What producer and consumers of Kafka have in common: settings, and where errors go.
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

// Of a record, an event included: what the topics are made with.
#define KAFKA_RECORD_MAX "8388608"

// Records with this key, and all without a value, are nobody's event: they only warm a producer up.
#define KAFKA_WARMUP_KEY "__warmup"

// Room for a number as the value of a setting.
enum { KAFKA_NUMBER_SIZE = 24 };

struct kafka_setting {
    const char *name;
    const char *value;
};

// Prints the number of KiB that `bytes` are, rounded up.
void kafka_print_kbytes(int64_t bytes, char *ret_text);

// A configuration with `settings` (ended by one without a name) and the log and error callbacks
// set; NULL when one is refused (logged).
rd_kafka_conf_t *kafka_conf_new(const char *brokers, const struct kafka_setting *settings);

// Makes a client, taking `conf` over; NULL when it is refused (logged).
rd_kafka_t *kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf);

// Ends a client, which has been closed as far as it can be. Returns within some seconds: one that
// does not end by then goes on by itself (logged).
void kafka_client_destroy(rd_kafka_t *client);
