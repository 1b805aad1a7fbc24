// SPDX-License-Identifier: Apache-2.0
// Carries events from the outbox to the log. Whoever commits submits the outbox row here; the row
// is deleted when the log confirms. A thread of the relay reads back events that were not given
// along with their row, polls for rows that somebody else left behind, and deletes finished rows.
#pragma once

#include "base/loop.h"
#include "events/event_log.h"

struct relay;

struct relay_options {
    const char *database_url;
    int64_t statement_timeout_ms;
    int64_t leftover_age_ms;  // 3000: how old a row must be before polling takes it
    int64_t leftover_poll_ms; // 1000
    int queue_max; // most rows in memory, from commit to deletion; others are left to polling
};

// Reads the events of the outbox row `outbox_id` back, into an array on the heap; returns their
// number, 0 (and no array) if there are none or the row is gone, or a negative error. Given by the
// app (fanout/load.h), so that the relay needs no SQL of chat.
struct session;
typedef int relay_load_fn(struct session *session, const char *outbox_id,
                          struct event ***ret_events);

NODISCARD int relay_new(const struct relay_options *options, struct log_options *log_options,
                        relay_load_fn *load, struct relay **ret_relay);
struct log *relay_log(struct relay *relay);
NODISCARD int relay_start(struct relay *relay);
// Stops the thread once everything in memory was given to the log, after `drain_ms` at the latest.
void relay_stop(struct relay *relay, int64_t drain_ms);
void relay_free(struct relay *relay);

// Row `outbox_id`, with `events` (takes references), was committed; count 0: the relay reads them
// back. Any thread; never blocks; beyond `queue_max` the row is left to polling (counted).
void relay_submit(struct relay *relay, const char *outbox_id, struct event *const *events,
                  size_t count);

// Row `outbox_id`, one of many of the same change, was committed: its events are read back when no
// other row waits for that and the log has carried out those of the one before. As above.
void relay_submit_later(struct relay *relay, const char *outbox_id);

// Row `outbox_id` was committed, and its effects are already done (a mark): only deletes the row.
// Any thread.
void relay_forget(struct relay *relay, const char *outbox_id);
