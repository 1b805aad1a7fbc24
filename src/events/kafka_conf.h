// SPDX-License-Identifier: Apache-2.0
// What producers and consumers share: settings, and error callbacks.
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

// The maximum size of a record, which includes an encoded event. Topics are created with it.
#define KAFKA_RECORD_MAX "8388608"

// Records with this key, and all records without a value, carry no event: they only warm up a
// producer.
#define KAFKA_WARMUP_KEY "__warmup"

// Buffer size for a number as a setting's value.
enum { KAFKA_NUMBER_SIZE = 24 };

struct kafka_setting {
    const char *name;
    const char *value;
};

// Prints `bytes` in KiB, rounded up.
void kafka_print_kbytes(int64_t bytes, char *ret_text);

// Creates a configuration with `settings` (terminated by one without a name) and with the log and
// error callbacks. NULL if a setting is rejected (logged).
rd_kafka_conf_t *kafka_conf_new(const char *brokers, const struct kafka_setting *settings);

// Creates a client; takes over `conf`. NULL on failure (logged).
rd_kafka_t *kafka_client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf);

// Destroys a client, after it was closed as far as possible. Returns within a few seconds: a client
// that has not ended by then is left to end in the background (logged).
void kafka_client_destroy(rd_kafka_t *client);
