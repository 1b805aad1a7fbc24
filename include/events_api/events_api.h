// SPDX-License-Identifier: Apache-2.0
// The Events API over HTTP: a thread that posts events to the events_url of apps. Waiting events
// are in Postgres (app_events), so they outlive any instance; the instance that takes an event from
// there sends it.
#pragma once

#include "base/secrets.h"
#include "events/event.h"
#include "store/session.h"

struct events_api;

struct events_api_options {
    const char *database_url;      // must outlive the push
    const struct secrets *secrets; // likewise; open the signing secrets of apps
    int64_t statement_timeout_ms;
    int64_t timeout_ms;   // for an app to answer
    int64_t retry_ms;     // before the second retry; the third waits 5 times as long
    int64_t queue_max;    // events that may wait for one app
    int64_t total_max;    // events that may wait for all apps together
    int64_t keep_s;       // how long an event may wait
    int64_t parallel;     // most requests at once
    int64_t app_parallel; // of these, to one app
    bool private_allowed; // whether URLs may be at private and local addresses
    // Events for apps in Socket Mode, which are kept in the same table and taken by gateways.
    int64_t link_max;     // that may wait for one app
    int64_t link_keep_s;  // how long they wait while the app has no link
    int64_t link_wait_ms; // time for the first attempt, which gateways make without the table
};

// Starts the thread. Before any other thread that uses libcurl.
NODISCARD int events_api_start(const struct events_api_options *options,
                               struct events_api **ret_events_api);

// Stores, by `session`, those of `events` that an app gets by HTTP or by a link, each once however
// often it arrives. Any thread until push_stop(); blocks on Postgres. -ERROR_UNAVAILABLE,
// -ERROR_BUSY: nothing was stored, or that is not known.
NODISCARD int events_api_keep(struct events_api *events_api, struct session *session,
                              struct event *const *events, size_t count);

// Gives requests under way at most `drain_ms` to end, then stops the thread and frees. Takes NULL.
void events_api_stop(struct events_api *events_api, int64_t drain_ms);
