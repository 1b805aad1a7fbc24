// SPDX-License-Identifier: Apache-2.0
// Fan-out workers: N threads that read the log, apply its events to Redis (heads, unread state) and
// publish them to the gateways (one publish per event of a channel, whatever the channel's size).
// The strategies' per-member state is updated after publishing. All steps may be repeated. While
// Redis is down, the workers retry at intervals, and the log keeps the events.
#pragma once

#include "cache/pipeline.h"
#include "events/event_log.h"
#include "store/session.h"

struct workers;

struct workers_options {
    struct cache_options cache;
    const char *database_url;
    int64_t statement_timeout_ms;
    int count;
    int64_t thread_read_s; // how long Redis keeps a thread's read cursor
    // Stores events that are needed after the log has dropped them (for apps and devices). May be
    // NULL. Called on a worker's thread with a session of its own, for the events of a few
    // milliseconds, after they were published to sockets. May block; events may be passed more than
    // once. -ERROR_UNAVAILABLE, -ERROR_BUSY: called again later.
    int (*store)(void *arg, struct session *session, struct event *const *events, size_t count);
    void *arg;
};

NODISCARD int workers_start(struct log *log, const struct workers_options *options,
                            struct workers **ret_workers);
// Call after log_stop(). Gives work in progress at most `drain_ms`, then joins the threads and
// frees everything. NULL is allowed.
void workers_stop(struct workers *workers, int64_t drain_ms);
