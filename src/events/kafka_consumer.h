// SPDX-License-Identifier: Apache-2.0
// A member of the consumer group; each worker reads from one. On that worker's thread, except where
// noted.
#pragma once

#include "events/event_log.h"
#include "kafka_producer.h"

struct kafka_consumer;

// `producer` sends the dead letters. The strings of `options` are copied.
NODISCARD int kafka_consumer_new(const struct log_options *options, struct kafka_producer *producer,
                                 struct kafka_consumer **ret_consumer);
// Makes the consumers leave the group, so that other members need not wait for their session
// timeouts, and frees them. In parallel, as each may wait some seconds for an unavailable Kafka.
// Call after the workers' threads have ended.
void kafka_consumers_free(struct kafka_consumer *const *consumers, int count);

// Same contracts as log_read() and log_commit().
int kafka_consumer_read(struct kafka_consumer *consumer, struct event **ret_events, int max,
                        int64_t timeout_ms);
void kafka_consumer_commit(struct kafka_consumer *consumer);

// Makes current and future reads return 0 at once. Any thread.
void kafka_consumer_stop(struct kafka_consumer *consumer);
