// SPDX-License-Identifier: Apache-2.0
// One member of the consumer group: what one worker reads. All on that worker's thread, unless told
// otherwise.
#pragma once

#include "events/event_log.h"
#include "kafka_producer.h"

struct kafka_consumer;

// `producer` is for the dead letters. The options' strings are copied.
NODISCARD int kafka_consumer_new(const struct log_options *options, struct kafka_producer *producer,
                                 struct kafka_consumer **ret_consumer);
// They leave the group, so that others need not wait for silent members, and are freed: all at
// once, since each may have to wait some seconds for a Kafka that is away. After the workers'
// threads ended.
void kafka_consumers_free(struct kafka_consumer *const *consumers, int count);

// As log_read() and log_commit().
int kafka_consumer_read(struct kafka_consumer *consumer, struct event **ret_events, int max,
                        int64_t timeout_ms);
void kafka_consumer_commit(struct kafka_consumer *consumer);

// Makes reading answer 0 at once from now on. Any thread.
void kafka_consumer_stop(struct kafka_consumer *consumer);
