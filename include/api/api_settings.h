// SPDX-License-Identifier: Apache-2.0
// Settings of the methods. See base/settings_rows.h for the form of a row.
#pragma once

#include "base/settings_rows.h"

#define API_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                   \
    TEXT(public_url, PUBLIC_URL, "",                                                               \
         "public URL of this service, used in socket URLs; empty: from the Host header")           \
    TEXT(operator_token, OPERATOR_TOKEN, "",                                                       \
         "token that may call admin.workspaces.create; empty: nobody may")                         \
    TEXT(files_url, FILES_URL, "",                                                                 \
         "where files are kept: file:///directory, the same for all instances; empty: no files")   \
    INTEGER(file_max_bytes, FILE_MAX_BYTES, 104857600, 1, 1099511627776, "maximum size of a file") \
    INTEGER(user_files_bytes, USER_FILES_BYTES, 10737418240, 1, 1125899906842624,                  \
            "bytes of all files of a user")                                                        \
    INTEGER(upload_keep_s, UPLOAD_KEEP_S, 3600, 1, 86400,                                          \
            "seconds until an unfinished upload is removed")                                       \
    INTEGER(objects_bytes, OBJECTS_BYTES, 8388608, 0, 68719476736,                                 \
            "memory per loop for cached channels, for channels.info")                              \
    INTEGER(ticket_ms, TICKET_MS, 30000, 100, 3600000, "lifetime of a URL from rtm.connect")       \
    INTEGER(start_max, START_MAX, 1000, 1, 10000,                                                  \
            "maximum entries of each list of rtm.start; paged methods give the rest")              \
    LIMIT(devices_max, DEVICES_MAX, 100, "registered devices per user")                            \
    INTEGER(token_cache_ms, TOKEN_CACHE_MS, 4000, 0, 5000,                                         \
            "time a token is cached unless a change is announced; without Redis at most 500 ms")   \
    INTEGER(tokens_max, TOKENS_MAX, 100000, 1, 10000000, "tokens cached per loop")                 \
    LIMIT(token_lookups_max, TOKEN_LOOKUPS_MAX, 64,                                                \
          "concurrent token lookups in Postgres per loop; others wait")                            \
    INTEGER(text_max, TEXT_MAX, 40000, 1, 1000000, "maximum code points of a message text")        \
    LIMIT(mentions_max, MENTIONS_MAX, 500, "maximum users mentioned in a message")                 \
    INTEGER(rate_limit, RATE_LIMIT, 3000000, 0, 1000000000,                                        \
            "calls per minute per token and method; 0: no limit")                                  \
    TEXT(rate_limits, RATE_LIMITS, "", "methods with their own limit: \"chat.postMessage=600,…\"") \
    INTEGER(rate_channel, RATE_CHANNEL, 3000000, 0, 1000000000,                                    \
            "posts per minute per channel; 0: no limit")                                           \
    INTEGER(rate_bytes, RATE_BYTES, 67108864, 0, 60000000000,                                      \
            "bytes per minute of one user's bodies over 4 KiB; 0: no limit")                       \
    INTEGER(                                                                                       \
        rate_strangers_bytes, RATE_STRANGERS_BYTES, 1048576, 0, 60000000000,                       \
        "bytes per minute of bodies over 4 KiB to api.test, all callers together; 0: no limit")    \
    LIMIT(rate_settle_ms, RATE_SETTLE_MS, 5000,                                                    \
          "interval at which instances share their call counts, for rate limits")                  \
    INTEGER(rate_buckets_max, RATE_BUCKETS_MAX, 100000, 16, 10000000,                              \
            "rate limit buckets (a token and method, or a channel) per loop")

SETTINGS_STRUCT(api, API_SETTINGS);
