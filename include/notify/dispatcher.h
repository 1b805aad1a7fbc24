// SPDX-License-Identifier: Apache-2.0
// The dispatcher of pushes: a thread that takes devices whose turn it is from Postgres, sends each
// its current push through notify, and stores the outcome in Postgres. Instances share the work:
// when one dies, others take over its turns. docs/decisions/2026-11-25-pushes.md
#pragma once

#include "base/secrets.h"
#include "cache/cache.h"
#include "events/event.h"
#include "notify/notify.h"
#include "notify/notify_settings.h"
#include "store/session.h"

struct dispatcher;

struct dispatcher_options {
    struct notify_settings settings;
    const char *database_url;      // like all pointers here, must outlive the dispatcher
    const struct secrets *secrets; // decrypt apps' keys and devices' addresses
    struct notify *notify;
    struct cache_options cache;
    int64_t statement_timeout_ms;
};

// Starts the thread.
NODISCARD int dispatcher_start(const struct dispatcher_options *options,
                               struct dispatcher **ret_dispatcher);

// Stores push jobs for the devices that `events` concern, over `session`; may be repeated. Any
// thread, until dispatcher_free(); blocks on Postgres. Errors of session_call().
NODISCARD int dispatcher_store(struct dispatcher *dispatcher, struct session *session,
                               struct event *const *events, size_t count);

// Waits at most `drain_ms` for the outcome of pushes in flight, then ends the thread. NULL is
// allowed.
void dispatcher_stop(struct dispatcher *dispatcher, int64_t drain_ms);
// Call after notify_stop(), which still reports outcomes. NULL is allowed.
void dispatcher_free(struct dispatcher *dispatcher);
