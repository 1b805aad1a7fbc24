// SPDX-License-Identifier: Apache-2.0
// The log between a commit and its effects: Kafka, or a queue in this process when no broker is
// set. Producers append what one outbox row tells of; workers read, apply, and say so. A channel's
// events go to one worker, in the order appended. An event may come more than once, and late:
// effects are merges.
#pragma once

#include "events/event.h"

struct log;

struct log_options {
    const char *brokers; // NULL or "": in-process
    const char *topic;
    const char *group;
    int workers;
    int queue_max; // events held in memory; more are refused (the outbox still has them)
};

// Called once per appended row: r = 0 when the row may go (in-process: its effects are done; Kafka:
// all delivered), negative when it must stay for a later try. On a thread of the log's own or a
// worker's; must not block.
typedef void log_done_fn(void *arg, const char *outbox_id, int r);

// Kafka: creates the topic if it is missing, and warms the producer up; log_is_ready() tells when.
NODISCARD int log_new(const struct log_options *options, log_done_fn *fn, void *arg,
                      struct log **ret_log);
// Stops workers' reading (log_read answers 0 at once), flushes what was appended for at most
// `flush_ms`.
void log_stop(struct log *log, int64_t flush_ms);
void log_free(struct log *log); // after all worker threads ended

bool log_is_ready(const struct log *log); // any thread

// Appends the events of one outbox row. Takes a reference of each event. Any thread; never blocks.
// -ERROR_BUSY: the queue is full, or Kafka takes nothing now; `fn` is not called then.
NODISCARD int log_append(struct log *log, const char *outbox_id, struct event *const *events,
                         size_t count);

// Waits up to timeout_ms for events of `worker` and fills at most `max` (each with a reference of
// the reader's own). Returns how many. Kafka: what cannot be decoded goes to the dead-letter topic
// (<topic>.dead) and is counted.
int log_read(struct log *log, int worker, struct event **ret_events, int max, int64_t timeout_ms);

// The effects of all that this worker's last log_read() gave are done (or given up): offsets
// stored, rows answered.
void log_commit(struct log *log, int worker);
