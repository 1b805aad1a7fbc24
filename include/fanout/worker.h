// SPDX-License-Identifier: Apache-2.0
// Fan-out: N threads that read the log and bring its events to Redis (heads, unread state) and to
// the gateways (one publish for each event of a channel, whatever its size). Per-member state of
// the strategies is updated after the gateways have been told. Everything they do may be repeated.
// While Redis is away they try again, with pauses; the log keeps the events meanwhile.
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
    int64_t thread_read_s; // how long Redis keeps a read position in a thread
    // Stores those events that somebody needs after the log has dropped them (for apps); may be
    // NULL. Called on a worker's thread with the session of its own, for what came within a few
    // milliseconds, after sockets have heard of it; may block; events may come more than once.
    // -ERROR_UNAVAILABLE, -ERROR_BUSY: it is called again later.
    int (*keep)(void *arg, struct session *session, struct event *const *events, size_t count);
    void *arg;
};

NODISCARD int workers_start(struct log *log, const struct workers_options *options,
                            struct workers **ret_workers);
// After log_stop(). Gives what is under way at most `drain_ms`, then joins and frees. Takes NULL.
void workers_stop(struct workers *workers, int64_t drain_ms);
