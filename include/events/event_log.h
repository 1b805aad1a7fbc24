// SPDX-License-Identifier: Apache-2.0
// The log that carries events from commit to effects: Kafka, or an in-process queue if no broker is
// configured. Producers append the events of an outbox row; workers read events, apply their
// effects, and commit. All events of a channel go to the same worker, in the order appended.
// Delivery is at least once and may be late, so effects must be idempotent.
#pragma once

#include "events/event.h"

struct log;

struct log_options {
    const char *brokers; // NULL or "": in-process
    const char *topic;
    const char *group;
    int workers;
    // Limits on events held in memory and on the bytes of their frames. Beyond them, appends fail
    // (the outbox keeps the events), except that a larger row is accepted if nothing else is held.
    int queue_max;
    int64_t queue_bytes;
    // Limit on the frame bytes returned by one read, since the effects of a read become one call to
    // Redis and one to Postgres, whose sizes are limited. The last event may exceed it.
    int64_t read_bytes;
    int64_t kafka_queue_bytes; // encoded records buffered in Kafka's client
    int64_t kafka_fetch_bytes; // fetched ahead per worker
};

// Called once per appended row. r = 0: delete the row (in-process: its effects are done; Kafka: all
// its events are delivered). Negative: keep it for a retry. Runs on a thread of the log or of a
// worker; must not block.
typedef void log_done_fn(void *arg, const char *outbox_id, int r);

// Kafka: creates missing topics and warms up the producer in the background; log_is_ready() says
// when that is done.
NODISCARD int log_new(const struct log_options *options, log_done_fn *fn, void *arg,
                      struct log **ret_log);
// Makes log_read() return 0 at once, and waits at most `flush_ms` for appended events to be
// flushed.
void log_stop(struct log *log, int64_t flush_ms);
void log_free(struct log *log); // only after all worker threads have ended

bool log_is_ready(const struct log *log); // any thread

// Whether the log has replied recently. In-process: always. Any thread.
bool log_answers(const struct log *log);
// Whether the log does not reply, or workers lag by some seconds. In-process: never. Any thread.
bool log_is_behind(const struct log *log);

// Appends the events of an outbox row; takes its own reference to each. Any thread; never blocks.
// -ERROR_BUSY: the queue is full, or Kafka's client accepts nothing now; `fn` is not called.
NODISCARD int log_append(struct log *log, const char *outbox_id, struct event *const *events,
                         size_t count);

// Waits up to `timeout_ms` for events for `worker`. Returns their number: at most `max`, and none
// after read_bytes is reached. The caller owns a reference to each. Kafka: records that cannot be
// decoded are counted and go to the dead-letter topic (<topic>.dead).
int log_read(struct log *log, int worker, struct event **ret_events, int max, int64_t timeout_ms);

// Confirms all events that the worker has read so far: their effects are applied, or given up.
// Stores offsets (Kafka) or answers rows (in-process).
void log_commit(struct log *log, int worker);
