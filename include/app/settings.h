// SPDX-License-Identifier: Apache-2.0
// Every setting, in one table: it makes the struct, reads the environment, prints `tidings --help`
// and docs/settings.md.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

// TEXT(field, NAME, default, description)   INTEGER(field, NAME, default, min, max, description)
// FLAG(field, NAME, default, …)
#define SETTINGS_TABLE(TEXT, INTEGER, FLAG)                                                        \
    TEXT(listen, LISTEN, "127.0.0.1:8080",                                                         \
         "address and port to serve on; \":8080\" is every address")                               \
    TEXT(database_url, DATABASE_URL, "postgres://localhost/tidings", "Postgres, as a libpq URL")   \
    TEXT(redis_url, REDIS_URL, "redis://127.0.0.1:6379",                                           \
         "Redis: redis://[user:password@]host:port[/db] or unix:///path")                          \
    TEXT(kafka_brokers, KAFKA_BROKERS, "",                                                         \
         "Kafka, as host:port,…; empty: the log is kept in this process")                          \
    TEXT(kafka_topic, KAFKA_TOPIC, "tidings.messages",                                             \
         "topic of the log; <topic>.dead takes what cannot be read")                               \
    TEXT(kafka_group, KAFKA_GROUP, "tidings-fanout", "consumer group of the fan-out workers")      \
    TEXT(public_url, PUBLIC_URL, "",                                                               \
         "how clients reach this service, for socket URLs; empty: from the Host header")           \
    TEXT(cors_origins, CORS_ORIGINS, "",                                                           \
         "origins whose pages may call and read event streams: \"https://a.example,…\", or *")     \
    TEXT(operator_token, OPERATOR_TOKEN, "",                                                       \
         "token that may call admin.workspaces.create; empty: nobody may")                         \
    TEXT(instance, INSTANCE, "", "name of this instance in logs; empty: the listen address")       \
    TEXT(log_level, LOG_LEVEL, "info", "least level logged: debug, info, warn or error")           \
    FLAG(access_log, ACCESS_LOG, true, "one line for each API call")                               \
    INTEGER(loops, LOOPS, 0, 0, 256, "event loops; 0: half of the cores, at least 1")              \
    INTEGER(workers, WORKERS, 1, 1, 64, "fan-out workers")                                         \
    INTEGER(connections_max, CONNECTIONS_MAX, 16000, 1, 1000000,                                   \
            "open HTTP connections of a loop; more are refused")                                   \
    INTEGER(sockets_max, SOCKETS_MAX, 100000, 1, 1000000,                                          \
            "open sockets of a loop; more are refused")                                            \
    INTEGER(body_max_bytes, BODY_MAX_BYTES, 2097152, 1024, 67108864, "bytes of a request's body")  \
    INTEGER(reply_max_bytes, REPLY_MAX_BYTES, 67108864, 65536, 1073741824, "bytes of a reply")     \
    INTEGER(header_timeout_ms, HEADER_TIMEOUT_MS, 10000, 100, 600000,                              \
            "time for a request's head to arrive")                                                 \
    INTEGER(body_timeout_ms, BODY_TIMEOUT_MS, 30000, 100, 600000,                                  \
            "time for a request's body to arrive")                                                 \
    INTEGER(idle_timeout_ms, IDLE_TIMEOUT_MS, 75000, 100, 3600000,                                 \
            "time that a kept-alive connection may be silent")                                     \
    INTEGER(statement_timeout_ms, STATEMENT_TIMEOUT_MS, 10000, 100, 600000,                        \
            "time for Postgres to answer a statement")                                             \
    INTEGER(redis_timeout_ms, REDIS_TIMEOUT_MS, 500, 10, 60000,                                    \
            "time for Redis to answer; then it counts as away")                                    \
    INTEGER(batch_max, BATCH_MAX, 1000, 1, 1000, "posts or marks of one group commit")             \
    INTEGER(queue_max, QUEUE_MAX, 20000, 16, 1000000,                                              \
            "posts, marks, or calls of channels.info, that may wait on a loop")                    \
    INTEGER(sidebar_bytes, SIDEBAR_BYTES, 67108864, 0, 68719476736,                                \
            "bytes in which a loop keeps the channels of users in many, for unread.sync")          \
    INTEGER(objects_bytes, OBJECTS_BYTES, 8388608, 0, 68719476736,                                 \
            "bytes in which a loop keeps channels as channels.info shows them")                    \
    INTEGER(sidebar_min, SIDEBAR_MIN, 500, 0, 1000000,                                             \
            "channels from which on a user's are kept there")                                      \
    INTEGER(log_queue_max, LOG_QUEUE_MAX, 200000, 1000, 10000000,                                  \
            "events of the log in memory; beyond, the outbox keeps them")                          \
    INTEGER(socket_queue_max_bytes, SOCKET_QUEUE_MAX_BYTES, 1048576, 4096, 1073741824,             \
            "bytes that may wait for one socket; then it is closed as slow")                       \
    INTEGER(socket_message_max_bytes, SOCKET_MESSAGE_MAX_BYTES, 65536, 1024, 1048576,              \
            "bytes of one message from a socket")                                                  \
    INTEGER(socket_frames_per_s, SOCKET_FRAMES_PER_S, 64, 1, 1000,                                 \
            "frames a second that a socket may send for long")                                     \
    INTEGER(socket_frames_burst, SOCKET_FRAMES_BURST, 256, 1, 100000,                              \
            "frames that a socket may send at once; beyond, it is closed")                         \
    INTEGER(ping_interval_ms, PING_INTERVAL_MS, 10000, 1000, 600000,                               \
            "how often sockets are pinged")                                                        \
    INTEGER(pong_timeout_ms, PONG_TIMEOUT_MS, 23000, 1000, 600000,                                 \
            "time that a socket may stay silent beyond a ping; then it is closed")                 \
    INTEGER(ticket_ms, TICKET_MS, 30000, 100, 3600000,                                             \
            "time in which the URL that rtm.connect gave can be used")                             \
    INTEGER(start_max, START_MAX, 1000, 1, 10000,                                                  \
            "entries of each list of rtm.start; more are left to the methods that page")           \
    INTEGER(channel_linger_ms, CHANNEL_LINGER_MS, 30000, 0, 3600000,                               \
            "how long a channel is followed after its last socket went")                           \
    INTEGER(head_check_ms, HEAD_CHECK_MS, 2000, 50, 600000,                                        \
            "how often channels' heads are compared with what sockets got")                        \
    INTEGER(hole_delay_ms, HOLE_DELAY_MS, 30, 0, 10000,                                            \
            "time for missing events to come by themselves; then Postgres is asked")               \
    INTEGER(hole_timeout_ms, HOLE_TIMEOUT_MS, 1000, 10, 600000,                                    \
            "time for a hole to be filled; then sockets are told of a gap")                        \
    INTEGER(hole_events_max, HOLE_EVENTS_MAX, 100, 1, 10000,                                       \
            "events of a channel read back at once, and that may wait behind a hole")              \
    INTEGER(hole_reads_max, HOLE_READS_MAX, 10, 1, 1000,                                           \
            "reads that may fill one hole; a larger one is told as a gap")                         \
    INTEGER(token_check_ms, TOKEN_CHECK_MS, 3000, 100, 60000,                                      \
            "how often the tokens of open sockets are checked")                                    \
    INTEGER(presence_ttl_s, PRESENCE_TTL_S, 60, 3, 3600,                                           \
            "after which a user whose instance died counts as away")                               \
    INTEGER(presence_grace_ms, PRESENCE_GRACE_MS, 1000, 0, 600000,                                 \
            "who comes back within it after the last connection went never was away")              \
    INTEGER(presence_subs_max, PRESENCE_SUBS_MAX, 1000, 1, 100000,                                 \
            "users whose presence one socket may follow")                                          \
    INTEGER(typing_interval_ms, TYPING_INTERVAL_MS, 500, 0, 60000,                                 \
            "least time between two user_typing of one socket; others are dropped")                \
    INTEGER(link_ack_ms, LINK_ACK_MS, 3000, 50, 60000,                                             \
            "time for an app to ack an envelope; for each further attempt twice as long")          \
    INTEGER(link_attempts_max, LINK_ATTEMPTS_MAX, 3, 2, 10,                                        \
            "attempts to bring an envelope to an app; then it is dropped")                         \
    INTEGER(link_queue_max, LINK_QUEUE_MAX, 1000, 1, 100000,                                       \
            "events that may wait for an app in Socket Mode; more are dropped")                    \
    INTEGER(                                                                                       \
        link_keep_s, LINK_KEEP_S, 300, 1, 86400,                                                   \
        "how long events wait for an app that lost its last connection; then they are dropped")    \
    INTEGER(links_max, LINKS_MAX, 10, 1, 10000,                                                    \
            "connections of an app on all instances; more are turned away")                        \
    INTEGER(link_life_s, LINK_LIFE_S, 18000, 11, 86400,                                            \
            "after which an app's connection is told to connect anew")                             \
    INTEGER(push_timeout_ms, PUSH_TIMEOUT_MS, 3000, 50, 60000,                                     \
            "time for an app's events_url to answer")                                              \
    INTEGER(push_retry_ms, PUSH_RETRY_MS, 60000, 10, 3600000,                                      \
            "until an event's second retry; the first is at once, the third waits 5 times this")   \
    INTEGER(push_queue_max, PUSH_QUEUE_MAX, 10000, 1, 1000000,                                     \
            "events that may wait for one app's events_url; more are dropped")                     \
    INTEGER(push_total_max, PUSH_TOTAL_MAX, 100000, 1, 10000000,                                   \
            "events that may wait for all apps, in Socket Mode too; more are dropped")             \
    INTEGER(push_keep_s, PUSH_KEEP_S, 86400, 1, 2592000,                                           \
            "how long an event may wait for an events_url; then it is dropped")                    \
    INTEGER(push_parallel, PUSH_PARALLEL, 64, 1, 1000,                                             \
            "requests to events_urls under way at once")                                           \
    INTEGER(push_app_parallel, PUSH_APP_PARALLEL, 8, 1, 1000, "of these, to one app's")            \
    FLAG(push_private, PUSH_PRIVATE, false,                                                        \
         "whether an events_url may be at a private or local address")                             \
    INTEGER(resume_max_s, RESUME_MAX_S, 86400, 0, 2592000,                                         \
            "how long after its end an event stream can be resumed without a gap")                 \
    INTEGER(resume_max_events, RESUME_MAX_EVENTS, 10000, 1, 1000000,                               \
            "events of a channel read back for a resumed event stream; more are a gap")            \
    INTEGER(socket_focus_max, SOCKET_FOCUS_MAX, 16, 1, 1000,                                       \
            "channels that one socket may focus at once")                                          \
    INTEGER(token_cache_ms, TOKEN_CACHE_MS, 4000, 0, 5000,                                         \
            "how long a token is believed without asking Postgres")                                \
    INTEGER(tokens_max, TOKENS_MAX, 100000, 1, 10000000, "tokens that a loop keeps")               \
    INTEGER(                                                                                       \
        unread_max, UNREAD_MAX, 100, 1, 100,                                                       \
        "unread messages that a channel of strategy zset shows; beyond, it says there are more")   \
    INTEGER(singles_max, SINGLES_MAX, 1000, 1, 100000,                                             \
            "messages of a channel that a user may have read one by one beyond the cursor")        \
    INTEGER(auto_zset_members, AUTO_ZSET_MEMBERS, 0, 0, 1000000,                                   \
            "auto uses zset in channels of at most so many members; 0: never")                     \
    INTEGER(auto_counter_members, AUTO_COUNTER_MEMBERS, 0, 0, 1000000,                             \
            "auto uses counter in channels of at most so many members; 0: never")                  \
    INTEGER(auto_bitmap_members, AUTO_BITMAP_MEMBERS, 0, 0, 100000000,                             \
            "auto uses bitmap in channels of at least so many members; 0: never")                  \
    INTEGER(rebuilds_max, REBUILDS_MAX, 16, 1, 10000,                                              \
            "states that a loop reads from Postgres for Redis at the same time")                   \
    INTEGER(members_check_s, MEMBERS_CHECK_S, 86400, 1, 31536000,                                  \
            "seconds between comparisons of Redis' lists of members with Postgres")                \
    INTEGER(audit_pairs, AUDIT_PAIRS, 1000, 0, 1000000,                                            \
            "counts in Redis that are compared with Postgres at a time; 0: none")                  \
    INTEGER(audit_interval_s, AUDIT_INTERVAL_S, 60, 1, 86400, "seconds between such comparisons")  \
    INTEGER(rebuild_pairs_per_s, REBUILD_PAIRS_PER_S, 50000, 1, 10000000,                          \
            "counts a second that are written to a Redis which has lost everything")               \
    INTEGER(auto_interval_s, AUTO_INTERVAL_S, 60, 1, 86400,                                        \
            "seconds between looks for channels of auto that have outgrown what they use")         \
    INTEGER(text_max, TEXT_MAX, 40000, 1, 1000000, "code points of a message's text")              \
    INTEGER(mentions_max, MENTIONS_MAX, 500, 1, 1000, "users that a message may mention")          \
    INTEGER(rate_limit, RATE_LIMIT, 3000000, 0, 1000000000,                                        \
            "calls a minute of a token to one method; 0: any number")                              \
    TEXT(rate_limits, RATE_LIMITS, "", "methods with another limit: \"chat.postMessage=600,…\"")   \
    INTEGER(rate_channel, RATE_CHANNEL, 3000000, 0, 1000000000,                                    \
            "posts a minute to one channel; 0: any number")                                        \
    INTEGER(rate_settle_ms, RATE_SETTLE_MS, 5000, 10, 60000,                                       \
            "how soon instances tell each other of calls, for rate limits")                        \
    INTEGER(rate_buckets_max, RATE_BUCKETS_MAX, 100000, 16, 10000000,                              \
            "tokens' methods and channels whose calls a loop counts at a time")                    \
    INTEGER(idempotency_days, IDEMPOTENCY_DAYS, 7, 1, 365,                                         \
            "days that a client_msg_id is remembered")                                             \
    INTEGER(retention_days, RETENTION_DAYS, 90, 2, 36500, "days that messages are kept")           \
    INTEGER(thread_read_days, THREAD_READ_DAYS, 30, 1, 3650,                                       \
            "days that Redis keeps how far a thread was read; Postgres keeps it")                  \
    INTEGER(goodbye_ms, GOODBYE_MS, 5000, 0, 600000,                                               \
            "time that a stopping instance gives to sockets to go by themselves")                  \
    INTEGER(drain_ms, DRAIN_MS, 10000, 0, 600000,                                                  \
            "time that a stopping instance gives to all that is under way")

struct settings {
#define SETTINGS_TEXT(field, name, value, description) const char *field;
#define SETTINGS_INTEGER(field, name, value, min, max, description) int64_t field;
#define SETTINGS_FLAG(field, name, value, description) bool field;
    SETTINGS_TABLE(SETTINGS_TEXT, SETTINGS_INTEGER, SETTINGS_FLAG)
#undef SETTINGS_TEXT
#undef SETTINGS_INTEGER
#undef SETTINGS_FLAG
};

// Reads the environment. A bad value: -ERROR_INVALID_ARGUMENTS, with its name, value and range
// appended to `complaint`. Texts point into the environment or are static.
NODISCARD int settings_read(struct settings *ret_settings, struct buffer *complaint);

// Warns in the log of each name in the environment that begins like a setting's and is none: a
// typo, mostly. No more than that: Kubernetes, too, makes such names, of a service that is called
// tidings.
void settings_log_unknown(void);

// The table for people: one line a setting.
void settings_print(struct buffer *out);
