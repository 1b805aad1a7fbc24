// SPDX-License-Identifier: Apache-2.0
// The log between a commit and its effects: Kafka, or a queue in this process when no broker is
// set. Producers append the events of one outbox row; workers read events, carry out their effects,
// and confirm. A channel's events go to one worker, in the order appended. An event may arrive more
// than once, and late: effects must allow for that.
#pragma once

#include "events/event.h"

struct log;

struct log_options {
    const char *brokers; // NULL or "": in-process
    const char *topic;
    const char *group;
    int workers;
    // Events held in memory, and bytes of their frames; more are refused (the outbox still has
    // them), but for one row that has more by itself.
    int queue_max;
    int64_t queue_bytes;
    // Bytes of frames that are read together: what is done with them is one call of Redis' and one
    // of Postgres', which have bounds. The last of them may exceed it.
    int64_t read_bytes;
    int64_t kafka_queue_bytes; // of records in Kafka's client, as they were encoded
    int64_t kafka_fetch_bytes; // that it reads ahead, for each worker
};

// Called once per appended row. r = 0: the row may be deleted (in-process: its effects are done;
// Kafka: all events are delivered); negative: it must stay for another try. Called on a thread of
// the log or a worker; must not block.
typedef void log_done_fn(void *arg, const char *outbox_id, int r);

// Kafka: creates the topic if it is missing and warms up the producer; log_is_ready() tells when
// that is done.
NODISCARD int log_new(const struct log_options *options, log_done_fn *fn, void *arg,
                      struct log **ret_log);
// Ends the workers' reading (log_read() returns 0 at once), and waits at most `flush_ms` until what
// was appended is flushed.
void log_stop(struct log *log, int64_t flush_ms);
void log_free(struct log *log); // after all worker threads ended

bool log_is_ready(const struct log *log); // any thread

// Whether it has answered lately. In-process: always. Any thread.
bool log_answers(const struct log *log);
// Whether it does not, or workers are some seconds behind with what it has. In-process: never. Any
// thread.
bool log_is_behind(const struct log *log);

// Appends the events of one outbox row. Takes a reference of each event. Any thread; never blocks.
// -ERROR_BUSY: the queue is full, or Kafka takes nothing now; `fn` is not called then.
NODISCARD int log_append(struct log *log, const char *outbox_id, struct event *const *events,
                         size_t count);

// Waits up to timeout_ms for events for `worker` and returns at most `max` of them, and none after
// the options' read_bytes (the caller gets a reference of each). Returns how many. Kafka: records
// that cannot be decoded go to the dead-letter topic (<topic>.dead) and are counted.
int log_read(struct log *log, int worker, struct event **ret_events, int max, int64_t timeout_ms);

// Confirms that the effects of all events that this worker has read are done (or given up): stores
// offsets, answers rows.
void log_commit(struct log *log, int worker);
