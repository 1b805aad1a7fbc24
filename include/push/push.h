// SPDX-License-Identifier: Apache-2.0
// The Events API over HTTP: a thread that posts events to the events_url of apps. What waits is in
// Postgres (app_events): it outlives any instance, and whoever takes an event there is the one that
// sends it.
#pragma once

#include "events/event.h"

struct push;

struct push_options {
    const char *database_url; // must outlive the push
    int64_t statement_timeout_ms;
    int64_t timeout_ms;   // for an app to answer
    int64_t retry_ms;     // until the second retry; the third waits 5 times as long
    int64_t queue_max;    // events that wait for one app
    int64_t total_max;    // and for all
    int64_t keep_s;       // how long one waits at most
    int64_t parallel;     // requests under way
    int64_t app_parallel; // of these, to one app
    bool private_allowed; // URLs at private and local addresses
    // What is kept for apps in Socket Mode, which gateways take.
    int64_t link_max;     // for one app
    int64_t link_keep_s;  // as long as it has no link
    int64_t link_wait_ms; // while links may bring it by themselves
};

// Starts the thread. Before any other thread that uses libcurl.
NODISCARD int push_start(const struct push_options *options, struct push **ret_push);

// Keeps those of `events` that an app gets by HTTP or by a link, each once however often it comes.
// Any thread until push_stop(); blocks on Postgres. -ERROR_UNAVAILABLE, -ERROR_BUSY: nothing was
// kept, or it is not known.
NODISCARD int push_keep(struct push *push, struct event *const *events, size_t count);

// Gives requests under way at most `drain_ms`, and frees. Takes NULL.
void push_stop(struct push *push, int64_t drain_ms);
