// SPDX-License-Identifier: Apache-2.0
// Settings of pushes to devices. See base/settings_rows.h for the form of a row.
#pragma once

#include "base/settings_rows.h"

#define NOTIFY_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                \
    TEXT(push_apns_url, PUSH_APNS_URL, "",                                                         \
         "URL of APNs; empty: Apple's, by the app's environment")                                  \
    TEXT(push_fcm_url, PUSH_FCM_URL, "", "URL of FCM; empty: Google's")                            \
    TEXT(push_google_token_url, PUSH_GOOGLE_TOKEN_URL, "",                                         \
         "URL of Google's access tokens; empty: token_uri of the service account")                 \
    TEXT(push_ca_file, PUSH_CA_FILE, "",                                                           \
         "CA certificates (PEM) for push providers; empty: the system's")                          \
    INTEGER(push_timeout_ms, PUSH_TIMEOUT_MS, 10000, 50, 600000,                                   \
            "time for a push provider to answer")                                                  \
    LIMIT(push_queue_max, PUSH_QUEUE_MAX, 20000,                                                   \
          "pushes to devices held in memory; more are refused")                                    \
    LIMIT(push_queue_bytes, PUSH_QUEUE_BYTES, 67108864, "bytes of them; the same")                 \
    LIMIT(push_app_queue_max, PUSH_APP_QUEUE_MAX, 10000, "of these, pushes of one app; the same")  \
    LIMIT(push_app_parallel, PUSH_APP_PARALLEL, 500, "concurrent pushes of one app; others wait")  \
    INTEGER(push_ttl_s, PUSH_TTL_S, 86400, 1, 2419200,                                             \
            "time a push is retried before it becomes a dead letter")                              \
    INTEGER(push_pause_ms, PUSH_PAUSE_MS, 1000, 0, 60000,                                          \
            "minimum time between two pushes of one conversation to one device")                   \
    INTEGER(push_active_s, PUSH_ACTIVE_S, 60, 0, 86400,                                            \
            "pushes wait while their user was active on an open socket within this time; 0: or "   \
            "has one open")                                                                        \
    INTEGER(push_jobs_max, PUSH_JOBS_MAX, 1000000, 0, 1000000000,                                  \
            "pending pushes, one per conversation and device; more are dropped")                   \
    INTEGER(push_dead_keep_s, PUSH_DEAD_KEEP_S, 604800, 1, 31536000,                               \
            "time dead letters of pushes are kept")

SETTINGS_STRUCT(notify, NOTIFY_SETTINGS);
