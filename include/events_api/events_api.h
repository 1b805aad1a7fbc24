// SPDX-License-Identifier: Apache-2.0
// The Events API over HTTP: a thread that posts events to apps' events_url. Waiting events are
// stored in Postgres (app_events), so they outlive any instance; the instance that takes an event
// from there sends it.
#pragma once

#include "base/secrets.h"
#include "events/event.h"
#include "events_api/events_api_settings.h"
#include "store/session.h"

struct events_api;

struct events_api_options {
    struct events_api_settings settings;
    const char *database_url;      // like `secrets`, must outlive the events_api
    const struct secrets *secrets; // decrypt apps' signing secrets
    int64_t statement_timeout_ms;
    // Events of apps in Socket Mode, stored in the same table and taken by gateways.
    int64_t app_socket_max;     // maximum waiting events per app
    int64_t app_socket_keep_s;  // how long they wait while the app has no socket
    int64_t app_socket_wait_ms; // time for the first attempt, which gateways make without the table
};

// Starts the thread. Call before starting any other thread that uses libcurl.
NODISCARD int events_api_start(const struct events_api_options *options,
                               struct events_api **ret_events_api);

// Stores, over `session`, those of `events` that an app receives by HTTP or over a socket; each
// event once, however often it is passed. Any thread, until events_api_stop(); blocks on Postgres.
// -ERROR_UNAVAILABLE, -ERROR_BUSY: nothing was stored, or the outcome is unknown.
NODISCARD int events_api_store(struct events_api *events_api, struct session *session,
                               struct event *const *events, size_t count);

// Waits at most `drain_ms` for requests in flight, then ends the thread and frees everything. NULL
// is allowed.
void events_api_stop(struct events_api *events_api, int64_t drain_ms);
