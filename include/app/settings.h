// SPDX-License-Identifier: Apache-2.0
// All settings: the tables of the modules, and that of the app. They generate the struct, the
// parser of the environment, `tidings --help` and docs/settings.md.
#pragma once

#include "api/api_settings.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/settings_rows.h"
#include "events_api/events_api_settings.h"
#include "gateway/gateway_settings.h"
#include "http/server_settings.h"
#include "notify/notify_settings.h"

#include <stdbool.h>
#include <stdint.h>

// Those that belong to no single module.
#define APP_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                   \
    TEXT(database_url, DATABASE_URL, "postgres://localhost/tidings", "Postgres, as a libpq URL")   \
    TEXT(redis_url, REDIS_URL, "redis://127.0.0.1:6379",                                           \
         "Redis: redis://[user:password@]host:port[/db], rediss://…, redis+sentinel://… or "       \
         "unix:///path")                                                                           \
    TEXT(kafka_brokers, KAFKA_BROKERS, "",                                                         \
         "Kafka brokers, as host:port,…; empty: no Kafka, in-process log")                         \
    TEXT(kafka_topic, KAFKA_TOPIC, "tidings.messages",                                             \
         "Kafka topic of the log; failed events go to <topic>.dead")                               \
    TEXT(kafka_group, KAFKA_GROUP, "tidings-fanout", "consumer group of the fan-out workers")      \
    TEXT(secret_key, SECRET_KEY, "",                                                               \
         "encrypts secrets in Postgres: 32 bytes in hex or base64; during rotation \"new,old\"; "  \
         "empty: stored in plain text")                                                            \
    TEXT(instance, INSTANCE, "", "name of this instance in logs; empty: the listen address")       \
    TEXT(log_level, LOG_LEVEL, "info", "lowest level to log: debug, info, warn or error")          \
    FLAG(access_log, ACCESS_LOG, true, "log a line per API call")                                  \
    INTEGER(loops, LOOPS, 0, 0, 256, "event loops (threads); 0: half of the cores, at least 1")    \
    INTEGER(workers, WORKERS, 1, 1, 64, "fan-out workers (threads)")                               \
    INTEGER(sockets_max, SOCKETS_MAX, 100000, 1, 1000000,                                          \
            "open sockets per loop; more are refused")                                             \
    INTEGER(statement_timeout_ms, STATEMENT_TIMEOUT_MS, 10000, 100, 600000,                        \
            "time for Postgres to answer a statement")                                             \
    LIMIT(statements_max, STATEMENTS_MAX, 20000,                                                   \
          "statements in flight on one of a loop's Postgres connections; more are refused")        \
    LIMIT(statements_bytes, STATEMENTS_BYTES, 268435456,                                           \
          "bytes of their parameters; the same, but a statement on its own may be larger")         \
    LIMIT(lock_wait_ms, LOCK_WAIT_MS, 50,                                                          \
          "time a post, a mark or another change waits for a locked row before it is set aside "   \
          "and retried")                                                                           \
    INTEGER(migrate_lock_ms, MIGRATE_LOCK_MS, 500, 10, 60000,                                      \
            "ms a step of tidings migrate waits for a lock; it ends, or is rolled back, within "   \
            "twice that")                                                                          \
    INTEGER(migrate_wait_s, MIGRATE_WAIT_S, 300, 0, 86400,                                         \
            "seconds a step is retried while others hold a lock")                                  \
    INTEGER(versions_keep_s, VERSIONS_KEEP_S, 86400, 1, 31536000,                                  \
            "seconds until functions of versions that no longer run are dropped")                  \
    INTEGER(redis_timeout_ms, REDIS_TIMEOUT_MS, 500, 10, 60000,                                    \
            "time for Redis to answer; then it counts as down")                                    \
    LIMIT(commands_max, COMMANDS_MAX, 200000,                                                      \
          "Redis commands in flight per loop; beyond it, Postgres is read instead")                \
    LIMIT(commands_bytes, COMMANDS_BYTES, 67108864, "bytes of them; the same")                     \
    INTEGER(batch_max, BATCH_MAX, 1000, 1, 1000, "maximum posts or marks in one group commit")     \
    LIMIT(batch_bytes, BATCH_BYTES, 1048576,                                                       \
          "bytes of posts in one group commit; a larger post is committed alone")                  \
    INTEGER(queue_bytes, QUEUE_BYTES, 33554432, 65536, 68719476736,                                \
            "bytes of waiting posts per loop; more are refused")                                   \
    INTEGER(queue_max, QUEUE_MAX, 20000, 16, 1000000,                                              \
            "waiting posts (and marks, and calls of channels.info) per loop")                      \
    INTEGER(sidebar_bytes, SIDEBAR_BYTES, 67108864, 0, 68719476736,                                \
            "memory per loop for the channel lists of users in many channels, for unread.sync")    \
    INTEGER(sidebar_min, SIDEBAR_MIN, 500, 0, 1000000,                                             \
            "channels a user must be in to be cached in TIDINGS_SIDEBAR_BYTES")                    \
    LIMIT(log_queue_max, LOG_QUEUE_MAX, 200000,                                                    \
          "events of the log held in memory; further ones stay in the outbox")                     \
    LIMIT(log_queue_bytes, LOG_QUEUE_BYTES, 67108864, "bytes of them, as frames; the same")        \
    LIMIT(log_read_bytes, LOG_READ_BYTES, 16777216,                                                \
          "bytes of events a worker reads from the log at once")                                   \
    LIMIT(kafka_queue_bytes, KAFKA_QUEUE_BYTES, 67108864,                                          \
          "bytes of unsent records in the Kafka client; further events stay in the outbox")        \
    LIMIT(kafka_fetch_bytes, KAFKA_FETCH_BYTES, 33554432,                                          \
          "bytes of records the Kafka client prefetches per worker")                               \
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
    LIMIT(rebuilds_max, REBUILDS_MAX, 16,                                                          \
          "concurrent reads per loop from Postgres to refill Redis")                               \
    INTEGER(members_check_s, MEMBERS_CHECK_S, 86400, 1, 31536000,                                  \
            "seconds between comparisons of Redis' member lists with Postgres")                    \
    INTEGER(audit_pairs, AUDIT_PAIRS, 1000, 0, 1000000,                                            \
            "counts in Redis that each audit compares with Postgres; 0: no audit")                 \
    INTEGER(audit_interval_s, AUDIT_INTERVAL_S, 60, 1, 86400, "seconds between audits")            \
    INTEGER(rebuild_pairs_per_s, REBUILD_PAIRS_PER_S, 50000, 1, 10000000,                          \
            "maximum counts per second written to a Redis that lost its data")                     \
    INTEGER(files_sweep_s, FILES_SWEEP_S, 60, 1, 3600,                                             \
            "seconds between removals of the bytes of files that are gone")                        \
    INTEGER(auto_interval_s, AUTO_INTERVAL_S, 60, 1, 86400,                                        \
            "seconds between searches for auto channels that have outgrown their strategy")        \
    INTEGER(idempotency_days, IDEMPOTENCY_DAYS, 7, 1, 365, "days a client_msg_id is remembered")   \
    INTEGER(retention_days, RETENTION_DAYS, 90, 2, 36500, "days messages are kept")                \
    LIMIT(thread_read_days, THREAD_READ_DAYS, 30,                                                  \
          "days Redis keeps read positions of threads; Postgres keeps them for good")              \
    INTEGER(drain_ms, DRAIN_MS, 10000, 0, 600000,                                                  \
            "maximum time a stopping instance gives all work in progress")

#define SETTINGS_TABLE(TEXT, INTEGER, FLAG, LIMIT)                                                 \
    APP_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                       \
    SERVER_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                    \
    GATEWAY_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                   \
    API_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                       \
    EVENTS_API_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)                                                \
    NOTIFY_SETTINGS(TEXT, INTEGER, FLAG, LIMIT)

// RENAMED(OLD, NEW, release): a setting's name before that release. It is read if the new name is
// unset, with a warning, and removed one release later.
#define SETTINGS_RENAMED(RENAMED)

// Each setting is a member, and so is each module's slice of them.
#define SETTINGS_SLICE(module, TABLE)                                                              \
    union {                                                                                        \
        struct {                                                                                   \
            SETTINGS_FIELDS(TABLE)                                                                 \
        };                                                                                         \
        struct module##_settings module;                                                           \
    }
struct settings {
    SETTINGS_FIELDS(APP_SETTINGS)
    SETTINGS_SLICE(server, SERVER_SETTINGS);
    SETTINGS_SLICE(gateway, GATEWAY_SETTINGS);
    SETTINGS_SLICE(api, API_SETTINGS);
    SETTINGS_SLICE(events_api, EVENTS_API_SETTINGS);
    SETTINGS_SLICE(notify, NOTIFY_SETTINGS);
};

// Reads the environment. -ERROR_INVALID_ARGUMENTS: invalid values, described in `errors` by
// name, value and range. Strings point into the environment or are static.
NODISCARD int settings_read(struct settings *ret_settings, struct buffer *errors);

// Logs a warning for each environment variable that is a setting's old name, or that begins with
// TIDINGS_ but is no setting, which is most likely a typo, or a limit. Not an error, since
// Kubernetes sets such variables for a service named tidings.
void settings_log_unknown(void);

// Prints the settings, one per line, then the fixed limits and the old names.
void settings_print(struct buffer *out);
