// SPDX-License-Identifier: Apache-2.0
// Moves events from the outbox to the log. Writers submit each outbox row they commit; the row is
// deleted when the log confirms it. The relay's thread reads back events that were not submitted
// along with their row, polls for rows left behind by other instances, and deletes finished rows.
#pragma once

#include "base/loop.h"
#include "events/event_log.h"

struct relay;

struct relay_options {
    const char *database_url;
    int64_t statement_timeout_ms;
    int64_t leftover_age_ms;  // 3000: minimum age of a row for polling
    int64_t leftover_poll_ms; // 1000
    int queue_max; // maximum rows in memory, from commit to deletion; more are left to polling
};

// Reads the events of outbox row `outbox_id` back, into an array on the heap. Returns their number,
// 0 (and no array) if there are none or the row is gone, or a negative error. Provided by the app
// (fanout/load.h), so that the relay needs no SQL of chat.
struct session;
typedef int relay_load_fn(struct session *session, const char *outbox_id,
                          struct event ***ret_events);

NODISCARD int relay_new(const struct relay_options *options, struct log_options *log_options,
                        relay_load_fn *load, struct relay **ret_relay);
struct log *relay_log(struct relay *relay);
NODISCARD int relay_start(struct relay *relay);
// Stops the thread when everything in memory has been appended to the log, at the latest after
// `drain_ms`.
void relay_stop(struct relay *relay, int64_t drain_ms);
void relay_free(struct relay *relay);

// Submits the committed row `outbox_id` with its `events` (takes references); count 0: the relay
// reads them back. Any thread; never blocks; beyond `queue_max` the row is left to polling
// (counted).
void relay_submit(struct relay *relay, const char *outbox_id, struct event *const *events,
                  size_t count);

// Submits the committed row `outbox_id`, one of many rows of the same change. Its events are read
// back when no other row waits to be read, and the log has finished with the previous row of this
// kind. Otherwise like relay_submit().
void relay_submit_later(struct relay *relay, const char *outbox_id);

// Submits the committed row `outbox_id`, whose effects are already done (a mark): it is only
// deleted. Any thread.
void relay_forget(struct relay *relay, const char *outbox_id);
