// SPDX-License-Identifier: Apache-2.0
// The dispatcher of pushes: a thread that takes devices whose turn it is from Postgres, sends each
// its current push through notify, and stores the outcome in Postgres. Instances share the work:
// when one dies, others take over its turns. docs/decisions/2026-11-25-pushes.md
#pragma once

#include "base/secrets.h"
#include "cache/cache.h"
#include "events/event.h"
#include "notify/notify.h"
#include "store/session.h"

struct dispatcher;

struct dispatcher_options {
    const char *database_url;      // like all pointers here, must outlive the dispatcher
    const struct secrets *secrets; // decrypt apps' keys and devices' addresses
    struct notify *notify;
    struct cache_options cache;
    int64_t statement_timeout_ms;
    int64_t parallel;     // maximum pushes in flight
    int64_t app_parallel; // of these, per app
    int64_t ttl_s;        // how long a push is retried
    int64_t pause_ms;     // minimum interval between pushes of a conversation to a device
    int64_t active_s; // users active on a socket within this time get no push; 0: connected users
    int64_t jobs_max; // maximum push jobs (device, channel, thread) stored; more are dropped
    int64_t dead_keep_s; // retention of dead letters
};

// Starts the thread.
NODISCARD int dispatcher_start(const struct dispatcher_options *options,
                               struct dispatcher **ret_dispatcher);

// Stores push jobs for the devices that `events` concern, over `session`; may be repeated. Any
// thread, until dispatcher_free(); blocks on Postgres. Errors of session_call().
NODISCARD int dispatcher_keep(struct dispatcher *dispatcher, struct session *session,
                              struct event *const *events, size_t count);

// Waits at most `drain_ms` for the outcome of pushes in flight, then ends the thread. NULL is
// allowed.
void dispatcher_stop(struct dispatcher *dispatcher, int64_t drain_ms);
// Call after notify_stop(), which still reports outcomes. NULL is allowed.
void dispatcher_free(struct dispatcher *dispatcher);
