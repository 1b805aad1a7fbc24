// SPDX-License-Identifier: Apache-2.0
// Settings of HTTP. See base/settings_rows.h for the form of a row.
#pragma once

#include "base/settings_rows.h"

#define SERVER_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                \
    TEXT(listen, LISTEN, "127.0.0.1:8080",                                                         \
         "address and port to listen on; \":8080\" means all addresses")                           \
    TEXT(cors_origins, CORS_ORIGINS, "",                                                           \
         "origins whose pages may call the API and read events: \"https://a.example,…\", or *")    \
    INTEGER(connections_max, CONNECTIONS_MAX, 16000, 1, 1000000,                                   \
            "open HTTP connections per loop; more are refused")                                    \
    INTEGER(body_max_bytes, BODY_MAX_BYTES, 2097152, 1024, 67108864,                               \
            "maximum size of a request body")                                                      \
    LIMIT(stranger_body_max_bytes, STRANGER_BODY_MAX_BYTES, 65536,                                 \
          "maximum size of a body without a token in the head")                                    \
    LIMIT(json_values_max, JSON_VALUES_MAX, 20000,                                                 \
          "maximum JSON values of a body or an argument, at any depth")                            \
    INTEGER(bodies_bytes, BODIES_BYTES, 67108864, 4096, 68719476736,                               \
            "bytes of request bodies in flight per loop; more are refused")                        \
    INTEGER(user_bodies_bytes, USER_BODIES_BYTES, 4194304, 4096, 68719476736,                      \
            "one user's share of it; a body on its own may be larger")                             \
    LIMIT(strangers_bodies_bytes, STRANGERS_BODIES_BYTES, 8388608,                                 \
          "share of all callers whose token is not verified yet")                                  \
    LIMIT(reply_max_bytes, REPLY_MAX_BYTES, 67108864, "maximum size of a reply")                   \
    INTEGER(gzip_min_bytes, GZIP_MIN_BYTES, 1024, 0, 1073741824,                                   \
            "larger replies are compressed for clients that accept gzip; 0: never")                \
    LIMIT(replies_bytes, REPLIES_BYTES, 268435456,                                                 \
          "unsent bytes of replies over 64 KiB, per loop")                                         \
    INTEGER(user_replies_bytes, USER_REPLIES_BYTES, 134217728, 65536, 68719476736,                 \
            "one user's share of it; a reply on its own may be larger")                            \
    INTEGER(header_timeout_ms, HEADER_TIMEOUT_MS, 10000, 100, 600000,                              \
            "time to receive a request's head; then the connection is closed")                     \
    INTEGER(body_timeout_ms, BODY_TIMEOUT_MS, 30000, 100, 600000,                                  \
            "time to receive a request's body, or to send 64 KiB more of a reply; then the "       \
            "connection is closed")                                                                \
    INTEGER(idle_timeout_ms, IDLE_TIMEOUT_MS, 75000, 100, 3600000,                                 \
            "time a connection may stay idle between requests")

SETTINGS_STRUCT(server, SERVER_SETTINGS);
