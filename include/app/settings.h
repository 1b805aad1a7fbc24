// SPDX-License-Identifier: Apache-2.0
// All settings, in one table, which generates the struct, the parser of the environment, `tidings
// --help` and docs/settings.md.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

// TEXT(field, NAME, default, description)   INTEGER(field, NAME, default, min, max, description)
// FLAG(field, NAME, default, …)
#define SETTINGS_TABLE(TEXT, INTEGER, FLAG)                                                        \
    TEXT(listen, LISTEN, "127.0.0.1:8080",                                                         \
         "address and port to listen on; \":8080\" means all addresses")                           \
    TEXT(database_url, DATABASE_URL, "postgres://localhost/tidings", "Postgres, as a libpq URL")   \
    TEXT(redis_url, REDIS_URL, "redis://127.0.0.1:6379",                                           \
         "Redis: redis://[user:password@]host:port[/db] or unix:///path")                          \
    TEXT(kafka_brokers, KAFKA_BROKERS, "",                                                         \
         "Kafka brokers, as host:port,…; empty: no Kafka, in-process log")                         \
    TEXT(kafka_topic, KAFKA_TOPIC, "tidings.messages",                                             \
         "Kafka topic of the log; failed events go to <topic>.dead")                               \
    TEXT(kafka_group, KAFKA_GROUP, "tidings-fanout", "consumer group of the fan-out workers")      \
    TEXT(public_url, PUBLIC_URL, "",                                                               \
         "public URL of this service, used in socket URLs; empty: from the Host header")           \
    TEXT(cors_origins, CORS_ORIGINS, "",                                                           \
         "origins whose pages may call the API and read events: \"https://a.example,…\", or *")    \
    TEXT(operator_token, OPERATOR_TOKEN, "",                                                       \
         "token that may call admin.workspaces.create; empty: nobody may")                         \
    TEXT(secret_key, SECRET_KEY, "",                                                               \
         "encrypts secrets in Postgres: 32 bytes in hex or base64; during rotation \"new,old\"; "  \
         "empty: stored in plain text")                                                            \
    TEXT(instance, INSTANCE, "", "name of this instance in logs; empty: the listen address")       \
    TEXT(log_level, LOG_LEVEL, "info", "lowest level to log: debug, info, warn or error")          \
    FLAG(access_log, ACCESS_LOG, true, "log a line per API call")                                  \
    INTEGER(loops, LOOPS, 0, 0, 256, "event loops (threads); 0: half of the cores, at least 1")    \
    INTEGER(workers, WORKERS, 1, 1, 64, "fan-out workers (threads)")                               \
    INTEGER(connections_max, CONNECTIONS_MAX, 16000, 1, 1000000,                                   \
            "open HTTP connections per loop; more are refused")                                    \
    INTEGER(sockets_max, SOCKETS_MAX, 100000, 1, 1000000,                                          \
            "open sockets per loop; more are refused")                                             \
    INTEGER(body_max_bytes, BODY_MAX_BYTES, 2097152, 1024, 67108864,                               \
            "maximum size of a request body")                                                      \
    INTEGER(stranger_body_max_bytes, STRANGER_BODY_MAX_BYTES, 65536, 4096, 67108864,               \
            "maximum size of a body without a token in the head")                                  \
    INTEGER(json_values_max, JSON_VALUES_MAX, 20000, 16, 10000000,                                 \
            "maximum JSON values of a body or an argument, at any depth")                          \
    INTEGER(bodies_bytes, BODIES_BYTES, 67108864, 4096, 68719476736,                               \
            "bytes of request bodies in flight per loop; more are refused")                        \
    INTEGER(user_bodies_bytes, USER_BODIES_BYTES, 4194304, 4096, 68719476736,                      \
            "one user's share of it; a body on its own may be larger")                             \
    INTEGER(strangers_bodies_bytes, STRANGERS_BODIES_BYTES, 8388608, 4096, 68719476736,            \
            "share of all callers whose token is not verified yet")                                \
    INTEGER(reply_max_bytes, REPLY_MAX_BYTES, 67108864, 65536, 1073741824,                         \
            "maximum size of a reply")                                                             \
    INTEGER(gzip_min_bytes, GZIP_MIN_BYTES, 1024, 0, 1073741824,                                   \
            "larger replies are compressed for clients that accept gzip; 0: never")                \
    INTEGER(replies_bytes, REPLIES_BYTES, 268435456, 65536, 68719476736,                           \
            "unsent bytes of replies over 64 KiB, per loop")                                       \
    INTEGER(user_replies_bytes, USER_REPLIES_BYTES, 134217728, 65536, 68719476736,                 \
            "one user's share of it; a reply on its own may be larger")                            \
    INTEGER(header_timeout_ms, HEADER_TIMEOUT_MS, 10000, 100, 600000,                              \
            "time to receive a request's head; then the connection is closed")                     \
    INTEGER(body_timeout_ms, BODY_TIMEOUT_MS, 30000, 100, 600000,                                  \
            "time to receive a request's body, or to send 64 KiB more of a reply; then the "       \
            "connection is closed")                                                                \
    INTEGER(idle_timeout_ms, IDLE_TIMEOUT_MS, 75000, 100, 3600000,                                 \
            "time a connection may stay idle between requests")                                    \
    INTEGER(statement_timeout_ms, STATEMENT_TIMEOUT_MS, 10000, 100, 600000,                        \
            "time for Postgres to answer a statement")                                             \
    INTEGER(statements_max, STATEMENTS_MAX, 20000, 100, 1000000,                                   \
            "statements in flight on one of a loop's Postgres connections; more are refused")      \
    INTEGER(statements_bytes, STATEMENTS_BYTES, 268435456, 65536, 68719476736,                     \
            "bytes of their parameters; the same, but a statement on its own may be larger")       \
    INTEGER(lock_wait_ms, LOCK_WAIT_MS, 50, 1, 60000,                                              \
            "time a post, a mark or another change waits for a locked row before it is set aside " \
            "and retried")                                                                         \
    INTEGER(migrate_lock_ms, MIGRATE_LOCK_MS, 500, 10, 60000,                                      \
            "ms a step of tidings migrate waits for a lock; it ends, or is rolled back, within "   \
            "twice that")                                                                          \
    INTEGER(migrate_wait_s, MIGRATE_WAIT_S, 300, 0, 86400,                                         \
            "seconds a step is retried while others hold a lock")                                  \
    INTEGER(versions_keep_s, VERSIONS_KEEP_S, 86400, 1, 31536000,                                  \
            "seconds until functions of versions that no longer run are dropped")                  \
    INTEGER(redis_timeout_ms, REDIS_TIMEOUT_MS, 500, 10, 60000,                                    \
            "time for Redis to answer; then it counts as down")                                    \
    INTEGER(commands_max, COMMANDS_MAX, 200000, 100, 10000000,                                     \
            "Redis commands in flight per loop; beyond it, Postgres is read instead")              \
    INTEGER(commands_bytes, COMMANDS_BYTES, 67108864, 65536, 68719476736,                          \
            "bytes of them; the same")                                                             \
    INTEGER(batch_max, BATCH_MAX, 1000, 1, 1000, "maximum posts or marks in one group commit")     \
    INTEGER(batch_bytes, BATCH_BYTES, 1048576, 65536, 16777216,                                    \
            "bytes of posts in one group commit; a larger post is committed alone")                \
    INTEGER(queue_bytes, QUEUE_BYTES, 33554432, 65536, 68719476736,                                \
            "bytes of waiting posts per loop; more are refused")                                   \
    INTEGER(queue_max, QUEUE_MAX, 20000, 16, 1000000,                                              \
            "waiting posts (and marks, and calls of channels.info) per loop")                      \
    INTEGER(sidebar_bytes, SIDEBAR_BYTES, 67108864, 0, 68719476736,                                \
            "memory per loop for the channel lists of users in many channels, for unread.sync")    \
    INTEGER(objects_bytes, OBJECTS_BYTES, 8388608, 0, 68719476736,                                 \
            "memory per loop for cached channels, for channels.info")                              \
    INTEGER(sidebar_min, SIDEBAR_MIN, 500, 0, 1000000,                                             \
            "channels a user must be in to be cached in TIDINGS_SIDEBAR_BYTES")                    \
    INTEGER(log_queue_max, LOG_QUEUE_MAX, 200000, 1000, 10000000,                                  \
            "events of the log held in memory; further ones stay in the outbox")                   \
    INTEGER(log_queue_bytes, LOG_QUEUE_BYTES, 67108864, 65536, 68719476736,                        \
            "bytes of them, as frames; the same")                                                  \
    INTEGER(log_read_bytes, LOG_READ_BYTES, 16777216, 65536, 33554432,                             \
            "bytes of events a worker reads from the log at once")                                 \
    INTEGER(kafka_queue_bytes, KAFKA_QUEUE_BYTES, 67108864, 16777216, 1073741824,                  \
            "bytes of unsent records in the Kafka client; further events stay in the outbox")      \
    INTEGER(kafka_fetch_bytes, KAFKA_FETCH_BYTES, 33554432, 1048576, 1073741824,                   \
            "bytes of records the Kafka client prefetches per worker")                             \
    INTEGER(socket_queue_max_bytes, SOCKET_QUEUE_MAX_BYTES, 1048576, 4096, 1073741824,             \
            "unsent bytes of one socket; beyond it, the socket is closed as slow")                 \
    INTEGER(socket_message_max_bytes, SOCKET_MESSAGE_MAX_BYTES, 65536, 1024, 1048576,              \
            "maximum size of one message from a socket")                                           \
    INTEGER(socket_values_max, SOCKET_VALUES_MAX, 2000, 16, 1000000,                               \
            "maximum JSON values of one message from a socket, at any depth")                      \
    INTEGER(socket_frames_per_s, SOCKET_FRAMES_PER_S, 64, 1, 1000,                                 \
            "sustained rate of frames from a socket, per second")                                  \
    INTEGER(socket_frames_burst, SOCKET_FRAMES_BURST, 256, 1, 100000,                              \
            "burst of frames from a socket; beyond it, the socket is closed")                      \
    INTEGER(ping_interval_ms, PING_INTERVAL_MS, 10000, 1000, 600000,                               \
            "interval between pings to a socket")                                                  \
    INTEGER(pong_timeout_ms, PONG_TIMEOUT_MS, 23000, 1000, 600000,                                 \
            "time a socket may stay silent after a ping; then it is closed")                       \
    INTEGER(ticket_ms, TICKET_MS, 30000, 100, 3600000, "lifetime of a URL from rtm.connect")       \
    INTEGER(start_max, START_MAX, 1000, 1, 10000,                                                  \
            "maximum entries of each list of rtm.start; paged methods give the rest")              \
    INTEGER(channel_linger_ms, CHANNEL_LINGER_MS, 30000, 0, 3600000,                               \
            "time a channel stays subscribed after its last socket has closed")                    \
    INTEGER(head_check_ms, HEAD_CHECK_MS, 2000, 50, 600000,                                        \
            "interval between comparisons of channels' heads with what sockets were sent")         \
    INTEGER(hole_delay_ms, HOLE_DELAY_MS, 30, 0, 10000,                                            \
            "time for missing events to arrive before Postgres is read")                           \
    INTEGER(hole_timeout_ms, HOLE_TIMEOUT_MS, 1000, 10, 600000,                                    \
            "time to fill in missing events; then sockets get a gap")                              \
    INTEGER(hole_events_max, HOLE_EVENTS_MAX, 100, 1, 10000,                                       \
            "missing events of a channel read back at once; also later events held meanwhile")     \
    INTEGER(hole_bytes, HOLE_BYTES, 16777216, 65536, 68719476736,                                  \
            "bytes of events held per loop because earlier ones are missing; further ones are "    \
            "read back")                                                                           \
    INTEGER(hole_reads_max, HOLE_READS_MAX, 10, 1, 1000,                                           \
            "reads to fill in missing events; then sockets get a gap")                             \
    INTEGER(token_check_ms, TOKEN_CHECK_MS, 60000, 100, 3600000,                                   \
            "interval between token checks of all open sockets; at most 3 s without Redis")        \
    INTEGER(presence_ttl_s, PRESENCE_TTL_S, 60, 3, 3600,                                           \
            "time after which a user whose instance died counts as away")                          \
    INTEGER(presence_grace_ms, PRESENCE_GRACE_MS, 1000, 0, 600000,                                 \
            "time to reconnect before a user counts as away")                                      \
    INTEGER(presence_subs_max, PRESENCE_SUBS_MAX, 1000, 1, 100000,                                 \
            "presence subscriptions per socket")                                                   \
    INTEGER(typing_interval_ms, TYPING_INTERVAL_MS, 500, 0, 60000,                                 \
            "minimum time between two user_typing from one socket; others are dropped")            \
    INTEGER(link_ack_ms, LINK_ACK_MS, 3000, 50, 60000,                                             \
            "time for an app to ack an envelope; doubled with each attempt")                       \
    INTEGER(link_attempts_max, LINK_ATTEMPTS_MAX, 3, 2, 10,                                        \
            "attempts to deliver an envelope to an app; then it is dropped")                       \
    INTEGER(link_queue_max, LINK_QUEUE_MAX, 1000, 1, 100000,                                       \
            "events queued for an app in Socket Mode; more are dropped")                           \
    INTEGER(link_keep_s, LINK_KEEP_S, 300, 1, 86400,                                               \
            "time events are kept for an app without a connection; then they are dropped")         \
    INTEGER(links_max, LINKS_MAX, 10, 1, 10000,                                                    \
            "connections of an app, across all instances; more are refused")                       \
    INTEGER(link_life_s, LINK_LIFE_S, 18000, 11, 86400,                                            \
            "time after which an app's connection is asked to reconnect")                          \
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
    INTEGER(events_api_app_parallel, EVENTS_API_APP_PARALLEL, 8, 1, 1000,                          \
            "concurrent requests to one app's events_url")                                         \
    FLAG(events_api_private, EVENTS_API_PRIVATE, false,                                            \
         "allow private and local addresses for an events_url, and for Web Push and Matrix "       \
         "devices")                                                                                \
    INTEGER(devices_max, DEVICES_MAX, 100, 1, 10000, "registered devices per user")                \
    TEXT(push_apns_url, PUSH_APNS_URL, "",                                                         \
         "URL of APNs; empty: Apple's, by the app's environment")                                  \
    TEXT(push_fcm_url, PUSH_FCM_URL, "", "URL of FCM; empty: Google's")                            \
    TEXT(push_google_token_url, PUSH_GOOGLE_TOKEN_URL, "",                                         \
         "URL of Google's access tokens; empty: token_uri of the service account")                 \
    TEXT(push_ca_file, PUSH_CA_FILE, "",                                                           \
         "CA certificates (PEM) for push providers; empty: the system's")                          \
    INTEGER(push_timeout_ms, PUSH_TIMEOUT_MS, 10000, 50, 600000,                                   \
            "time for a push provider to answer")                                                  \
    INTEGER(push_queue_max, PUSH_QUEUE_MAX, 20000, 1, 10000000,                                    \
            "pushes to devices held in memory; more are refused")                                  \
    INTEGER(push_queue_bytes, PUSH_QUEUE_BYTES, 67108864, 65536, 68719476736,                      \
            "bytes of them; the same")                                                             \
    INTEGER(push_app_queue_max, PUSH_APP_QUEUE_MAX, 10000, 1, 10000000,                            \
            "of these, pushes of one app; the same")                                               \
    INTEGER(push_app_parallel, PUSH_APP_PARALLEL, 500, 1, 100000,                                  \
            "concurrent pushes of one app; others wait")                                           \
    INTEGER(push_ttl_s, PUSH_TTL_S, 86400, 1, 2419200,                                             \
            "time a push is retried before it becomes a dead letter")                              \
    INTEGER(push_pause_ms, PUSH_PAUSE_MS, 1000, 0, 60000,                                          \
            "minimum time between two pushes of one conversation to one device")                   \
    INTEGER(                                                                                       \
        push_active_s, PUSH_ACTIVE_S, 60, 0, 86400,                                                \
        "users active on an open socket within this time get no push; 0: all with an open socket") \
    INTEGER(push_jobs_max, PUSH_JOBS_MAX, 1000000, 0, 1000000000,                                  \
            "pending pushes, one per conversation and device; more are dropped")                   \
    INTEGER(push_dead_keep_s, PUSH_DEAD_KEEP_S, 604800, 1, 31536000,                               \
            "time dead letters of pushes are kept")                                                \
    INTEGER(                                                                                       \
        resume_max_s, RESUME_MAX_S, 604800, 0, 2592000,                                            \
        "age up to which a stream, a socket or events.sync resumes from a position without a gap") \
    INTEGER(resume_max_events, RESUME_MAX_EVENTS, 10000, 1, 1000000,                               \
            "events of a channel read back on resume; beyond it, a gap is sent")                   \
    INTEGER(socket_focus_max, SOCKET_FOCUS_MAX, 16, 1, 1000,                                       \
            "channels one socket may focus at once")                                               \
    INTEGER(token_cache_ms, TOKEN_CACHE_MS, 4000, 0, 5000,                                         \
            "time a token is cached unless a change is announced; without Redis at most 500 ms")   \
    INTEGER(tokens_max, TOKENS_MAX, 100000, 1, 10000000, "tokens cached per loop")                 \
    INTEGER(token_lookups_max, TOKEN_LOOKUPS_MAX, 64, 1, 100000,                                   \
            "concurrent token lookups in Postgres per loop; others wait")                          \
    INTEGER(unread_max, UNREAD_MAX, 100, 1, 100,                                                   \
            "unread messages that strategy zset counts; beyond it, unread_capped is set")          \
    INTEGER(unread_display_max, UNREAD_DISPLAY_MAX, 100, 0, 1000000000,                            \
            "maximum of unread_count_display (100: clients show 99+); 0: no limit")                \
    INTEGER(singles_max, SINGLES_MAX, 1000, 1, 100000,                                             \
            "messages after the cursor that a user may mark read one by one, per channel")         \
    INTEGER(auto_zset_members, AUTO_ZSET_MEMBERS, 0, 0, 1000000,                                   \
            "auto uses zset in channels of at most this many members; 0: never")                   \
    INTEGER(auto_counter_members, AUTO_COUNTER_MEMBERS, 0, 0, 1000000,                             \
            "auto uses counter in channels of at most this many members; 0: never")                \
    INTEGER(auto_bitmap_members, AUTO_BITMAP_MEMBERS, 0, 0, 100000000,                             \
            "auto uses bitmap in channels of at least this many members; 0: never")                \
    INTEGER(rebuilds_max, REBUILDS_MAX, 16, 1, 10000,                                              \
            "concurrent reads per loop from Postgres to refill Redis")                             \
    INTEGER(members_check_s, MEMBERS_CHECK_S, 86400, 1, 31536000,                                  \
            "seconds between comparisons of Redis' member lists with Postgres")                    \
    INTEGER(audit_pairs, AUDIT_PAIRS, 1000, 0, 1000000,                                            \
            "counts in Redis that each audit compares with Postgres; 0: no audit")                 \
    INTEGER(audit_interval_s, AUDIT_INTERVAL_S, 60, 1, 86400, "seconds between audits")            \
    INTEGER(rebuild_pairs_per_s, REBUILD_PAIRS_PER_S, 50000, 1, 10000000,                          \
            "maximum counts per second written to a Redis that lost its data")                     \
    INTEGER(auto_interval_s, AUTO_INTERVAL_S, 60, 1, 86400,                                        \
            "seconds between searches for auto channels that have outgrown their strategy")        \
    INTEGER(text_max, TEXT_MAX, 40000, 1, 1000000, "maximum code points of a message text")        \
    INTEGER(mentions_max, MENTIONS_MAX, 500, 1, 1000, "maximum users mentioned in a message")      \
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
    INTEGER(rate_settle_ms, RATE_SETTLE_MS, 5000, 10, 60000,                                       \
            "interval at which instances share their call counts, for rate limits")                \
    INTEGER(rate_buckets_max, RATE_BUCKETS_MAX, 100000, 16, 10000000,                              \
            "rate limit buckets (a token and method, or a channel) per loop")                      \
    INTEGER(idempotency_days, IDEMPOTENCY_DAYS, 7, 1, 365, "days a client_msg_id is remembered")   \
    INTEGER(retention_days, RETENTION_DAYS, 90, 2, 36500, "days messages are kept")                \
    INTEGER(thread_read_days, THREAD_READ_DAYS, 30, 1, 3650,                                       \
            "days Redis keeps read positions of threads; Postgres keeps them for good")            \
    INTEGER(goodbye_ms, GOODBYE_MS, 5000, 0, 600000,                                               \
            "time a stopping instance gives sockets to disconnect")                                \
    INTEGER(drain_ms, DRAIN_MS, 10000, 0, 600000,                                                  \
            "maximum time a stopping instance gives all work in progress")

// RENAMED(OLD, NEW, release): a setting's name before that release. It is read if the new name is
// unset, with a warning, and removed one release later.
#define SETTINGS_RENAMED(RENAMED)

struct settings {
#define SETTINGS_TEXT(field, name, value, description) const char *field;
#define SETTINGS_INTEGER(field, name, value, min, max, description) int64_t field;
#define SETTINGS_FLAG(field, name, value, description) bool field;
    SETTINGS_TABLE(SETTINGS_TEXT, SETTINGS_INTEGER, SETTINGS_FLAG)
#undef SETTINGS_TEXT
#undef SETTINGS_INTEGER
#undef SETTINGS_FLAG
};

// Reads the environment. -ERROR_INVALID_ARGUMENTS: invalid values, described in `complaint` by
// name, value and range. Strings point into the environment or are static.
NODISCARD int settings_read(struct settings *ret_settings, struct buffer *complaint);

// Logs a warning for each environment variable that is a setting's old name, or that begins with
// TIDINGS_ but is not a setting, which is most likely a typo. Not an error, since Kubernetes sets
// such variables for a service named tidings.
void settings_log_doubtful(void);

// Prints the settings, one per line, then the old names.
void settings_print(struct buffer *out);
