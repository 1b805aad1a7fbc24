// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>

#include "base/cleanup.h"

// Replication factor: the broker's default.
enum { KAFKA_REPLICATION_DEFAULT = -1 };

// Creates the topics for events and dead letters, unless they exist or this user may not create
// topics. May take some seconds. -ERROR_UNAVAILABLE: try again; sets `replication` to 1 if the
// broker is too old to know its default.
NODISCARD int kafka_topics_create(rd_kafka_t *client, const char *topic, const char *dead_topic,
                                  int *replication);
