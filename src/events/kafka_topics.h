// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>

#include "base/cleanup.h"

// How many copies the broker says a topic has.
enum { KAFKA_REPLICATION_DEFAULT = -1 };

// Asks the broker for the topic of events and that of dead letters, unless they are there, or this
// user may not make any. May take some seconds. -ERROR_UNAVAILABLE: try again; a broker too old for
// its own default changes `replication` to 1 then.
NODISCARD int kafka_topics_create(rd_kafka_t *client, const char *topic, const char *dead_topic,
                                  int *replication);
