// SPDX-License-Identifier: Apache-2.0
// Fan-out: N threads that read the log and bring its events to Redis (heads, unread state) and to
// the gateways (one publish a channel's event, whatever the channel's size). Everything they do may
// be repeated. What strategies keep for each member follows when the gateways have been told. While
// Redis is away they try again, with a pause, and the log keeps.
#pragma once

#include "cache/pipeline.h"
#include "events/log.h"

struct workers;

struct workers_options {
    struct cache_options cache;
    const char *database_url;
    int64_t statement_timeout_ms;
    int count;
    int64_t thread_read_s; // how long Redis keeps a cursor in a thread
    // Keeps what must outlive the log's memory of the events; NULL: nobody does. On a worker's
    // thread, may block, events may come more than once. -ERROR_UNAVAILABLE, -ERROR_BUSY: again
    // later.
    int (*keep)(void *arg, struct event *const *events, size_t count);
    void *arg;
};

NODISCARD int workers_start(struct log *log, const struct workers_options *options,
                            struct workers **ret_workers);
void workers_stop(struct workers *workers); // after log_stop(); joins and frees
