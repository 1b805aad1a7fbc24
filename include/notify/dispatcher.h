// SPDX-License-Identifier: Apache-2.0
// Tells devices what there is to tell: a thread that takes those whose turn it is from Postgres,
// has notify send them the push of that moment, and tells Postgres what became of it. Turns are the
// work of all instances: what one leaves, when it dies, another takes up.
// docs/decisions/2026-11-25-pushes.md
#pragma once

#include "base/secrets.h"
#include "cache/cache.h"
#include "events/event.h"
#include "notify/notify.h"
#include "store/session.h"

struct dispatcher;

struct dispatcher_options {
    const char *database_url;      // must outlive the dispatcher, as all that is pointed to
    const struct secrets *secrets; // open the keys of apps and the addresses of devices
    struct notify *notify;
    struct cache_options cache;
    int64_t statement_timeout_ms;
    int64_t parallel;     // most pushes under way at once
    int64_t app_parallel; // of these, of one app
    int64_t ttl_s;        // how long a push is tried
    int64_t pause_ms;     // between two pushes of one conversation to one device
    int64_t active_s;     // who said something on a socket within it gets none; 0: who is connected
    int64_t jobs_max;     // conversations with something to tell, in Postgres; more are dropped
    int64_t dead_keep_s;  // how long dead letters are kept
};

// Starts the thread.
NODISCARD int dispatcher_start(const struct dispatcher_options *options,
                               struct dispatcher **ret_dispatcher);

// Has, by `session`, the devices told that `events` concern; may be repeated. Any thread until
// dispatcher_free(); blocks on Postgres. Errors of session_call().
NODISCARD int dispatcher_keep(struct dispatcher *dispatcher, struct session *session,
                              struct event *const *events, size_t count);

// Gives pushes under way at most `drain_ms` to be answered, then ends the thread. Takes NULL.
void dispatcher_stop(struct dispatcher *dispatcher, int64_t drain_ms);
// After notify_stop(), which still answers pushes. Takes NULL.
void dispatcher_free(struct dispatcher *dispatcher);
