// SPDX-License-Identifier: Apache-2.0
// What both kinds of log share.
#pragma once

#include "events/event_log.h"

// The functions of a kind of log. Each kind embeds a `struct log` as its first member.
struct log_backend {
    void (*stop)(struct log *log, int64_t flush_ms);
    void (*free)(struct log *log);
    bool (*is_ready)(const struct log *log);
    bool (*answers)(const struct log *log);   // NULL: always
    bool (*is_behind)(const struct log *log); // NULL: never
    int (*append)(struct log *log, const char *outbox_id, struct event *const *events,
                  size_t count);
    int (*read)(struct log *log, int worker, struct event **ret_events, int max,
                int64_t timeout_ms);
    void (*commit)(struct log *log, int worker);
};

struct log {
    const struct log_backend *backend;
    log_done_fn *done;
    void *arg;
};

NODISCARD int log_local_new(const struct log_options *options, log_done_fn *fn, void *arg,
                            struct log **ret_log);
NODISCARD int log_kafka_new(const struct log_options *options, log_done_fn *fn, void *arg,
                            struct log **ret_log);
