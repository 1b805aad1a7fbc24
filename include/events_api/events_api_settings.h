// SPDX-License-Identifier: Apache-2.0
// Settings of the Events API. See base/settings_rows.h for the form of a row.
#pragma once

#include "base/settings_rows.h"

#define EVENTS_API_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                            \
    INTEGER(events_api_timeout_ms, EVENTS_API_TIMEOUT_MS, 3000, 50, 60000,                         \
            "time for an app's events_url to answer")                                              \
    INTEGER(events_api_retry_ms, EVENTS_API_RETRY_MS, 60000, 10, 3600000,                          \
            "delay of an event's second retry; first: none, third: 5 times this")                  \
    INTEGER(events_api_queue_max, EVENTS_API_QUEUE_MAX, 10000, 1, 1000000,                         \
            "events queued for one app's events_url; more are dropped")                            \
    INTEGER(events_api_total_max, EVENTS_API_TOTAL_MAX, 100000, 1, 10000000,                       \
            "events queued for all apps, including Socket Mode; more are dropped")                 \
    INTEGER(events_api_keep_s, EVENTS_API_KEEP_S, 86400, 1, 2592000,                               \
            "time an event is kept for an events_url; then it is dropped")                         \
    INTEGER(events_api_parallel, EVENTS_API_PARALLEL, 64, 1, 1000,                                 \
            "concurrent requests to all events_urls")                                              \
    LIMIT(events_api_app_parallel, EVENTS_API_APP_PARALLEL, 8,                                     \
          "concurrent requests to one app's events_url")                                           \
    FLAG(events_api_private, EVENTS_API_PRIVATE, false,                                            \
         "allow private and local addresses for an events_url, and for Web Push and Matrix "       \
         "devices")

SETTINGS_STRUCT(events_api, EVENTS_API_SETTINGS);
