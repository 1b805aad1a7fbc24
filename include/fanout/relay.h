// SPDX-License-Identifier: Apache-2.0
// From the outbox to the log. Whoever commits tells the relay of the outbox row; the row goes when
// the log says so. A thread of its own reads back bodies that were not given, polls for rows that
// somebody else left behind, and deletes done rows.
#pragma once

#include "base/loop.h"
#include "events/log.h"

struct relay;

struct relay_options {
    const char *database_url;
    int64_t statement_timeout_ms;
    int64_t leftover_age_ms;  // 3000: how old a row must be before polling takes it
    int64_t leftover_poll_ms; // 1000
    int queue_max; // rows in memory, from commit to delete: over it they are left to polling
};

// Reads the events of outbox rows back: given by the app (fanout/load.h), so that this module
// needs no SQL of chat's. Appends to `events` (at most max) the events of row `outbox_id`; returns
// their count or a negative error.
struct session;
typedef int relay_load_fn(struct session *session, const char *outbox_id, struct event **ret_events,
                          int max);

NODISCARD int relay_new(const struct relay_options *options, struct log_options *log_options,
                        relay_load_fn *load, struct relay **ret_relay);
struct log *relay_log(struct relay *relay);
NODISCARD int relay_start(struct relay *relay);
// Stops the thread after what is in memory was given to the log, at most `drain_ms`.
void relay_stop(struct relay *relay, int64_t drain_ms);
void relay_free(struct relay *relay);

// Row `outbox_id` was committed and tells of `events` (takes references); count 0: read them back
// first. Any thread; never blocks; when memory is full the row is left to polling (counted).
void relay_submit(struct relay *relay, const char *outbox_id, struct event *const *events,
                  size_t count);

// Row `outbox_id` was committed and its effects are done already (a mark): only delete it. Any
// thread.
void relay_forget(struct relay *relay, const char *outbox_id);
