// SPDX-License-Identifier: Apache-2.0
// Settings of the gateway. See base/settings_rows.h for the form of a row.
#pragma once

#include "base/settings_rows.h"

#define GATEWAY_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                               \
    INTEGER(socket_queue_max_bytes, SOCKET_QUEUE_MAX_BYTES, 1048576, 4096, 1073741824,             \
            "unsent bytes of one socket; beyond it, the socket is closed as slow")                 \
    LIMIT(socket_message_max_bytes, SOCKET_MESSAGE_MAX_BYTES, 65536,                               \
          "maximum size of one message from a socket")                                             \
    LIMIT(socket_values_max, SOCKET_VALUES_MAX, 2000,                                              \
          "maximum JSON values of one message from a socket, at any depth")                        \
    LIMIT(socket_calls_max, SOCKET_CALLS_MAX, 16,                                                  \
          "calls of one socket in progress; more are refused")                                     \
    LIMIT(socket_frames_per_s, SOCKET_FRAMES_PER_S, 64,                                            \
          "sustained rate of frames from a socket, per second")                                    \
    LIMIT(socket_frames_burst, SOCKET_FRAMES_BURST, 256,                                           \
          "burst of frames from a socket; beyond it, the socket is closed")                        \
    INTEGER(ping_interval_ms, PING_INTERVAL_MS, 10000, 1000, 600000,                               \
            "interval between pings to a socket")                                                  \
    INTEGER(pong_timeout_ms, PONG_TIMEOUT_MS, 23000, 1000, 600000,                                 \
            "time a socket may stay silent after a ping; then it is closed")                       \
    LIMIT(channel_linger_ms, CHANNEL_LINGER_MS, 30000,                                             \
          "time a channel stays subscribed after its last socket has closed")                      \
    INTEGER(tail_check_ms, TAIL_CHECK_MS, 2000, 50, 600000,                                        \
            "interval between comparisons of channels' heads with what sockets were sent")         \
    INTEGER(gap_delay_ms, GAP_DELAY_MS, 30, 0, 10000,                                              \
            "time for missing events to arrive before Postgres is read")                           \
    INTEGER(gap_timeout_ms, GAP_TIMEOUT_MS, 1000, 10, 600000,                                      \
            "time to fill in missing events; then sockets get a gap")                              \
    INTEGER(gap_events_max, GAP_EVENTS_MAX, 100, 1, 10000,                                         \
            "missing events of a channel read back at once; also later events held meanwhile")     \
    LIMIT(gap_bytes, GAP_BYTES, 16777216,                                                          \
          "bytes of events held per loop because earlier ones are missing; further ones are "      \
          "read back")                                                                             \
    INTEGER(gap_reads_max, GAP_READS_MAX, 10, 1, 1000,                                             \
            "reads to fill in missing events; then sockets get a gap")                             \
    INTEGER(token_check_ms, TOKEN_CHECK_MS, 60000, 100, 3600000,                                   \
            "interval between token checks of all open sockets; at most 3 s without Redis")        \
    INTEGER(presence_ttl_s, PRESENCE_TTL_S, 60, 3, 3600,                                           \
            "time after which a user whose instance died counts as away")                          \
    INTEGER(presence_grace_ms, PRESENCE_GRACE_MS, 1000, 0, 600000,                                 \
            "time to reconnect before a user counts as away")                                      \
    LIMIT(presence_subs_max, PRESENCE_SUBS_MAX, 1000, "presence subscriptions per socket")         \
    LIMIT(typing_interval_ms, TYPING_INTERVAL_MS, 500,                                             \
          "minimum time between two user_typing from one socket; others are dropped")              \
    INTEGER(app_socket_ack_ms, APP_SOCKET_ACK_MS, 3000, 50, 60000,                                 \
            "time for an app to ack an envelope; doubled with each attempt")                       \
    LIMIT(app_socket_attempts_max, APP_SOCKET_ATTEMPTS_MAX, 3,                                     \
          "attempts to deliver an envelope to an app; then it is dropped")                         \
    INTEGER(app_socket_queue_max, APP_SOCKET_QUEUE_MAX, 1000, 1, 100000,                           \
            "events queued for an app in Socket Mode; more are dropped")                           \
    LIMIT(app_socket_keep_s, APP_SOCKET_KEEP_S, 300,                                               \
          "time events are kept for an app without a connection; then they are dropped")           \
    LIMIT(app_sockets_max, APP_SOCKETS_MAX, 10,                                                    \
          "connections of an app, across all instances; more are refused")                         \
    INTEGER(app_socket_life_s, APP_SOCKET_LIFE_S, 18000, 11, 86400,                                \
            "time after which an app's connection is asked to reconnect")                          \
    INTEGER(                                                                                       \
        resume_max_s, RESUME_MAX_S, 604800, 0, 2592000,                                            \
        "age up to which a stream, a socket or events.sync resumes from a position without a gap") \
    INTEGER(resume_max_events, RESUME_MAX_EVENTS, 10000, 1, 1000000,                               \
            "events of a channel read back on resume; beyond it, a gap is sent")                   \
    LIMIT(socket_focus_max, SOCKET_FOCUS_MAX, 16, "channels one socket may focus at once")         \
    INTEGER(goodbye_ms, GOODBYE_MS, 5000, 0, 600000,                                               \
            "time a stopping instance gives sockets to disconnect")

SETTINGS_STRUCT(gateway, GATEWAY_SETTINGS);
