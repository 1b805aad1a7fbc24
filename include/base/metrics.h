// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms, each a row of a table; shown at /metrics. Any thread.
#pragma once

#include "base/buffer.h"

#include <stdint.h>

// X(NAME, type, metric name, label text or "", help)
#define METRICS_TABLE(X)                                                                           \
    X(HTTP_CONNECTIONS, gauge, "tidings_http_connections", "", "Open HTTP connections")            \
    X(HTTP_CONNECTIONS_REFUSED, counter, "tidings_http_connections_refused_total",                 \
      "reason=\"full\"",                                                                           \
      "Connections refused by TIDINGS_CONNECTIONS_MAX or the limit of open files")                 \
    X(HTTP_DESCRIPTORS_SHORT, counter, "tidings_http_connections_refused_total",                   \
      "reason=\"open_files\"", "")                                                                 \
    X(HTTP_DEADLINE_HEADERS, counter, "tidings_http_deadline_total", "part=\"headers\"",           \
      "Connections closed because a request arrived too slowly")                                   \
    X(HTTP_DEADLINE_BODY, counter, "tidings_http_deadline_total", "part=\"body\"", "")             \
    X(HTTP_BAD_REQUESTS, counter, "tidings_http_bad_requests_total", "",                           \
      "Requests refused because they could not be parsed")                                         \
    X(HTTP_BODY_TOO_LARGE, counter, "tidings_http_body_too_large_total", "",                       \
      "Bodies over TIDINGS_BODY_MAX_BYTES")                                                        \
    X(BODIES_BYTES, gauge, "tidings_http_bodies_bytes", "", "Bytes of request bodies in flight")   \
    X(BODIES_USER, counter, "tidings_http_bodies_refused_total", "reason=\"user\"",                \
      "Bodies refused: by TIDINGS_USER_BODIES_BYTES, STRANGERS_BODIES_BYTES, "                     \
      "TIDINGS_BODIES_BYTES, STRANGER_BODY_MAX_BYTES, JSON_VALUES_MAX")                            \
    X(BODIES_STRANGERS, counter, "tidings_http_bodies_refused_total", "reason=\"strangers\"", "")  \
    X(BODIES_ALL, counter, "tidings_http_bodies_refused_total", "reason=\"all\"", "")              \
    X(BODIES_STRANGER_LARGE, counter, "tidings_http_bodies_refused_total", "reason=\"stranger\"",  \
      "")                                                                                          \
    X(BODIES_VALUES, counter, "tidings_http_bodies_refused_total", "reason=\"values\"", "")        \
    X(BODIES_PARSED_ASIDE, counter, "tidings_http_bodies_parsed_aside_total", "",                  \
      "Large bodies parsed on the thread beside the loop")                                         \
    X(REPLIES_BYTES, gauge, "tidings_http_replies_bytes", "",                                      \
      "Bytes of large replies not sent yet")                                                       \
    X(REPLIES_USER, counter, "tidings_http_replies_refused_total", "reason=\"user\"",              \
      "Replies refused: by TIDINGS_USER_REPLIES_BYTES, REPLIES_BYTES")                             \
    X(REPLIES_ALL, counter, "tidings_http_replies_refused_total", "reason=\"all\"", "")            \
    X(HTTP_REPLY_TOO_LARGE, counter, "tidings_http_reply_too_large_total", "",                     \
      "Replies over REPLY_MAX_BYTES")                                                              \
    X(RATELIMITED_TOKEN, counter, "tidings_ratelimited_total", "kind=\"token\"",                   \
      "Calls refused by a rate limit: of token, method, channel, webhook, or bytes")               \
    X(RATELIMITED_METHOD, counter, "tidings_ratelimited_total", "kind=\"method\"", "")             \
    X(RATELIMITED_CHANNEL, counter, "tidings_ratelimited_total", "kind=\"channel\"", "")           \
    X(RATELIMITED_WEBHOOK, counter, "tidings_ratelimited_total", "kind=\"webhook\"", "")           \
    X(RATELIMITED_BYTES, counter, "tidings_ratelimited_total", "kind=\"bytes\"", "")               \
    X(TRANSFERS, gauge, "tidings_file_transfers", "",                                              \
      "Uploads and downloads of files in progress")                                                \
    X(TRANSFERS_REFUSED, counter, "tidings_file_transfers_refused_total", "",                      \
      "Uploads and downloads refused: too many at once")                                           \
    X(FILE_OBJECTS_REMOVED, counter, "tidings_file_objects_removed_total", "",                     \
      "Stored objects removed: of deleted files and unfinished uploads")                           \
    X(RATE_BUCKETS, gauge, "tidings_rate_buckets", "", "Rate limit buckets in memory")             \
    X(RATE_BUCKETS_DROPPED, counter, "tidings_rate_buckets_dropped_total", "",                     \
      "Rate limit buckets evicted because of TIDINGS_RATE_BUCKETS_MAX")                            \
    X(TOKENS, gauge, "tidings_tokens", "", "Cached tokens")                                        \
    X(TOKENS_DROPPED, counter, "tidings_tokens_dropped_total", "",                                 \
      "Tokens evicted because of TIDINGS_TOKENS_MAX")                                              \
    X(TOKENS_WAITED, counter, "tidings_tokens_waited_total", "",                                   \
      "Token lookups queued because of TOKEN_LOOKUPS_MAX")                                         \
    X(TOKENS_FULL, counter, "tidings_tokens_refused_total", "",                                    \
      "Calls refused because TIDINGS_TOKENS_MAX lookups were in progress")                         \
    X(MESSAGES_POSTED, counter, "tidings_messages_posted_total", "", "Messages committed")         \
    X(MESSAGES_DUPLICATE, counter, "tidings_messages_duplicate_total", "",                         \
      "Posts recognised as retries of a committed one")                                            \
    X(POST_BATCHES, counter, "tidings_post_batches_total", "", "Group commits of posts")           \
    X(POST_BATCHES_REFUSED, counter, "tidings_post_batches_refused_total", "",                     \
      "Batches rolled back because a post was not allowed or already stored")                      \
    X(POST_BATCHES_SPLIT, counter, "tidings_post_batches_split_total", "",                         \
      "Batches retried item by item because one failed")                                           \
    X(POST_UNKNOWN, counter, "tidings_post_unknown_total", "",                                     \
      "Batches whose outcome was looked up after a lost connection")                               \
    X(POST_QUEUE_FULL, counter, "tidings_post_queue_full_total", "", "Posts refused: queue full")  \
    X(MARK_QUEUE_FULL, counter, "tidings_mark_queue_full_total", "",                               \
      "Marks refused: TIDINGS_QUEUE_MAX wait")                                                     \
    X(INFO_QUEUE_FULL, counter, "tidings_info_queue_full_total", "",                               \
      "Calls of channels.info refused: TIDINGS_QUEUE_MAX wait")                                    \
    X(CHANNEL_JSON_DROPPED, counter, "tidings_channels_dropped_total", "",                         \
      "Channels of channels.info not kept in memory because of TIDINGS_OBJECTS_BYTES")             \
    X(MARKS, counter, "tidings_marks_total", "", "Read positions committed")                       \
    X(SIDEBAR_ANEW, counter, "tidings_sidebars_read_total", "how=\"anew\"",                        \
      "Sidebars read for unread.sync")                                                             \
    X(SIDEBAR_CHANGES, counter, "tidings_sidebars_read_total", "how=\"changes\"", "")              \
    X(SIDEBAR_DROPPED, counter, "tidings_sidebars_dropped_total", "",                              \
      "Sidebars evicted from memory")                                                              \
    X(SIDEBAR_BYTES, gauge, "tidings_sidebars_bytes", "", "Memory of cached sidebars")             \
    X(STORE_CONNECTS, counter, "tidings_store_connects_total", "",                                 \
      "Connections opened to Postgres")                                                            \
    X(STORE_LOST, counter, "tidings_store_lost_total", "", "Connections to Postgres lost")         \
    X(ROWS_ASIDE, counter, "tidings_rows_aside_total", "",                                         \
      "Rows that could not be processed, put aside so that others are not held up")                \
    X(STORE_LOCKED, counter, "tidings_store_locked_total", "",                                     \
      "Posts, marks and other changes set aside because a row was locked")                         \
    X(STORE_QUEUE_FULL, counter, "tidings_store_queue_full_total", "",                             \
      "Statements refused because a connection's queue was full")                                  \
    X(CACHE_CONNECTS, counter, "tidings_cache_connects_total", "", "Connections opened to Redis")  \
    X(CACHE_LOST, counter, "tidings_cache_lost_total", "", "Connections to Redis lost")            \
    X(CACHE_TIMEOUTS, counter, "tidings_cache_timeouts_total", "",                                 \
      "Redis commands that timed out")                                                             \
    X(CACHE_QUEUE_FULL, counter, "tidings_cache_queue_full_total", "",                             \
      "Commands for Redis refused: COMMANDS_MAX or _BYTES are under way")                          \
    X(CACHE_FALLBACKS, counter, "tidings_cache_fallbacks_total", "",                               \
      "Reads answered from Postgres because of a Redis miss")                                      \
    X(CACHE_REBUILDS, counter, "tidings_cache_rebuilds_total", "", "Redis keys rebuilt")           \
    X(CACHE_REBUILDS_LEFT, counter, "tidings_cache_rebuilds_left_total", "",                       \
      "Rebuilds postponed because too many were in progress")                                      \
    X(COUNTS_DRIFTED, counter, "tidings_unread_drift_total", "",                                   \
      "Wrong unread counts in Redis found by comparison with Postgres")                            \
    X(COUNTS_FROM_REDIS, counter, "tidings_unread_from_redis_total", "",                           \
      "Counts read from or confirmed by Redis")                                                    \
    X(MEMBERS_WALKED, counter, "tidings_members_walked_total", "",                                 \
      "Members updated in Redis for posts and deletes")                                            \
    X(WALKS_FAILED, counter, "tidings_walks_failed_total", "",                                     \
      "Walks over members that did not complete")                                                  \
    X(MEMBERS_BUILT, counter, "tidings_members_built_total", "",                                   \
      "Member lists built from Postgres")                                                          \
    X(MEMBERS_REPAIRED, counter, "tidings_members_repaired_total", "",                             \
      "Members added to or removed from wrong lists in Redis")                                     \
    X(HOUSEKEEPING_FAILED, counter, "tidings_housekeeping_failed_total", "",                       \
      "Housekeeping tasks that failed and will be retried")                                        \
    X(UPKEEP_PIECES, counter, "tidings_upkeep_pieces_total", "",                                   \
      "Short transactions that delete old data")                                                   \
    X(UPKEEP_ROWS, counter, "tidings_upkeep_rows_total", "",                                       \
      "Rows read, changed or deleted in them")                                                     \
    X(MONTHS_EXPIRED, counter, "tidings_months_dropped_total", "",                                 \
      "Months of messages dropped by this instance")                                               \
    X(MONTH_EXPIRING_S, gauge, "tidings_month_expiring_seconds", "",                               \
      "Time since the current drop of a month began; 0: none in progress")                         \
    X(OUTBOX_ROWS, gauge, "tidings_outbox_rows", "",                                               \
      "Pending outbox rows of all instances; counted up to a million")                             \
    X(OUTBOX_OLDEST_S, gauge, "tidings_outbox_oldest_seconds", "",                                 \
      "Age of the oldest pending outbox row")                                                      \
    X(SNAPSHOT_OLDEST_S, gauge, "tidings_postgres_oldest_snapshot_seconds", "",                    \
      "Age of the transaction or slot that keeps Postgres from removing old row versions; 0: "     \
      "none")                                                                                      \
    X(CLOCK_AHEAD_S, gauge, "tidings_clock_ahead_seconds", "",                                     \
      "How far the highest ts of a channel is ahead of Postgres' clock")                           \
    X(CLOCK_HOLD_S, gauge, "tidings_clock_hold_seconds", "",                                       \
      "How long nothing will be deleted by age, because Postgres' clock has leapt")                \
    X(DEADLOCKS, counter, "tidings_postgres_deadlocks_total", "",                                  \
      "Deadlocks in this database, as counted by Postgres")                                        \
    X(HOT_CHANNELS, gauge, "tidings_hot_channels", "",                                             \
      "Channels whose heads are kept apart during a snapshot")                                     \
    X(PART_POSTGRES, gauge, "tidings_part_up", "part=\"postgres\"",                                \
      "Whether a dependency is up, as seen by this instance")                                      \
    X(PART_REDIS, gauge, "tidings_part_up", "part=\"redis\"", "")                                  \
    X(PART_LOG, gauge, "tidings_part_up", "part=\"log\"", "")                                      \
    X(OUTBOX_RELAYED, counter, "tidings_outbox_relayed_total", "", "Outbox rows completed")        \
    X(OUTBOX_LEFTOVERS, counter, "tidings_outbox_leftovers_total", "",                             \
      "Outbox rows picked up by polling")                                                          \
    X(OUTBOX_QUEUE_FULL, counter, "tidings_outbox_queue_full_total", "",                           \
      "Outbox rows left to polling because the in-memory queue was full")                          \
    X(EVENTS_PRODUCED, counter, "tidings_events_produced_total", "", "Events appended to the log") \
    X(EVENTS_FANNED_OUT, counter, "tidings_events_fanned_out_total", "", "Events fanned out")      \
    X(EVENTS_REFUSED, counter, "tidings_events_refused_total", "",                                 \
      "Events whose effects Redis refused; the affected keys become unknown")                      \
    X(EVENTS_POISON, counter, "tidings_events_poison_total", "",                                   \
      "Events dead-lettered after 3 tries")                                                        \
    X(EVENTS_UNKNOWN, counter, "tidings_events_unknown_total", "",                                 \
      "Events skipped because of an unknown format or kind, as from a later release")              \
    X(KAFKA_ERRORS, counter, "tidings_kafka_errors_total", "", "Errors reported by Kafka")         \
    X(DEAD_LETTERS, gauge, "tidings_dead_letters", "", "Records in the dead letter topic")         \
    X(SOCKETS_OPEN, gauge, "tidings_ws_connections", "kind=\"rtm\"", "Open sockets")               \
    X(STREAMS_OPEN, gauge, "tidings_ws_connections", "kind=\"sse\"", "")                           \
    X(STREAMS_RESUMED, counter, "tidings_streams_resumed_total", "",                               \
      "Event streams and sockets resumed from a position")                                         \
    X(STREAMS_UNFINISHED, counter, "tidings_streams_unfinished_total", "",                         \
      "Resumed streams and sockets that ended before they had caught up")                          \
    X(EVENTS_RESUMED, counter, "tidings_events_resumed_total", "",                                 \
      "Events read back for resumed streams and sockets")                                          \
    X(SOCKETS_OPENED, counter, "tidings_sockets_opened_total", "", "Sockets opened")               \
    X(SOCKETS_REFUSED, counter, "tidings_sockets_refused_total", "",                               \
      "Sockets refused because TIDINGS_SOCKETS_MAX was reached")                                   \
    X(SOCKET_TOKENS_CHECKED, counter, "tidings_socket_tokens_checked_total", "",                   \
      "Tokens of open connections checked in Postgres")                                            \
    X(SOCKETS_SLOW, counter, "tidings_sockets_closed_total", "reason=\"slow\"",                    \
      "Sockets closed by the server")                                                              \
    X(SOCKETS_FRAMES, counter, "tidings_sockets_closed_total", "reason=\"frames\"", "")            \
    X(SOCKETS_REVOKED, counter, "tidings_sockets_closed_total", "reason=\"revoked\"", "")          \
    X(SOCKETS_PROTOCOL, counter, "tidings_sockets_closed_total", "reason=\"protocol\"", "")        \
    X(SOCKETS_GAP, counter, "tidings_sockets_closed_total", "reason=\"gap\"", "")                  \
    X(SOCKETS_SILENT, counter, "tidings_sockets_closed_total", "reason=\"silent\"", "")            \
    X(FRAMES_SENT, counter, "tidings_events_delivered_total", "",                                  \
      "Event frames queued to sockets")                                                            \
    X(FRAMES_DOUBLE, counter, "tidings_events_dropped_total", "reason=\"double\"",                 \
      "Events dropped by a gateway")                                                               \
    X(GAPS_FOUND, counter, "tidings_gaps_found_total", "", "Gaps found in a channel's events")     \
    X(GAPS_FILLED, counter, "tidings_gaps_filled_total", "", "Gaps filled from Postgres")          \
    X(GAPS_TOLD, counter, "tidings_gaps_told_total", "", "Gaps sent to clients")                   \
    X(MARKS_HELD, counter, "tidings_marks_held_total", "",                                         \
      "Marks held back until their messages arrived")                                              \
    X(HELD_FULL, counter, "tidings_gaps_not_held_total", "",                                       \
      "Events behind a gap dropped for lack of memory; they are read back later")                  \
    X(SOCKET_CALLS, counter, "tidings_socket_requests_refused_total", "reason=\"calls\"",          \
      "Frames of sockets refused: by the number of calls under way, SOCKET_VALUES_MAX, "           \
      "SOCKET_FOCUS_MAX")                                                                          \
    X(SOCKET_VALUES, counter, "tidings_socket_requests_refused_total", "reason=\"values\"", "")    \
    X(SOCKET_FOCUS, counter, "tidings_socket_requests_refused_total", "reason=\"focus\"", "")      \
    X(PRESENCE_REFUSED, counter, "tidings_presence_refused_total", "",                             \
      "Presence requests from sockets with invalid or too many ids")                               \
    X(TYPING_DROPPED, counter, "tidings_typing_dropped_total", "",                                 \
      "Typing frames dropped because they came too often")                                         \
    X(APP_SOCKETS_TOO_MANY, counter, "tidings_app_sockets_too_many_total", "",                     \
      "Connections of apps refused by APP_SOCKETS_MAX")                                            \
    X(ENVELOPES_SENT, counter, "tidings_envelopes_sent_total", "", "Envelopes sent to apps")       \
    X(ENVELOPES_AGAIN, counter, "tidings_envelopes_again_total", "",                               \
      "Envelopes sent again because they were not acked")                                          \
    X(ENVELOPES_DROPPED, counter, "tidings_envelopes_dropped_total", "",                           \
      "Events dropped because an app did not ack them in time, or its queue was full")             \
    X(EVENTS_API_SENT, counter, "tidings_events_api_sent_total", "",                               \
      "Requests sent to apps' events_urls")                                                        \
    X(EVENTS_API_AGAIN, counter, "tidings_events_api_again_total", "",                             \
      "Retries among requests to events_urls")                                                     \
    X(EVENTS_API_TAKEN, counter, "tidings_events_api_taken_total", "",                             \
      "Requests to events_urls answered with 2xx")                                                 \
    X(EVENTS_API_FAILED_TRIES, counter, "tidings_events_api_dropped_total", "reason=\"tries\"",    \
      "Events for events_urls dropped")                                                            \
    X(EVENTS_API_FULL, counter, "tidings_events_api_dropped_total", "reason=\"full\"", "")         \
    X(EVENTS_API_EXPIRED, counter, "tidings_events_api_dropped_total", "reason=\"expired\"", "")   \
    X(EVENTS_API_LOST, counter, "tidings_events_api_dropped_total", "reason=\"refused\"", "")      \
    X(EVENTS_API_UNVERIFIED, counter, "tidings_events_api_unverified_total", "",                   \
      "Challenges not answered by an events_url")                                                  \
    X(EVENTS_API_ADDRESSES, counter, "tidings_events_api_addresses_refused_total", "",             \
      "Requests refused because an events_url resolved to a private address")                      \
    X(OUTBOUND_FULL, counter, "tidings_outbound_refused_total", "",                                \
      "Requests to other servers refused because too many were held")                              \
    X(LOGINS, counter, "tidings_logins_total", "outcome=\"ok\"", "Logins by JWT")                  \
    X(LOGINS_REFUSED, counter, "tidings_logins_total", "outcome=\"refused\"", "")                  \
    X(SECRETS_REFUSED, counter, "tidings_secrets_refused_total", "",                               \
      "Secrets in Postgres that TIDINGS_SECRET_KEY could not decrypt")                             \
    X(NOTIFY_APNS_DELIVERED, counter, "tidings_push_notifications_total",                          \
      "platform=\"apns\",outcome=\"delivered\"", "Pushes to devices, by outcome")                  \
    X(NOTIFY_APNS_GONE, counter, "tidings_push_notifications_total",                               \
      "platform=\"apns\",outcome=\"gone\"", "")                                                    \
    X(NOTIFY_APNS_RETRY, counter, "tidings_push_notifications_total",                              \
      "platform=\"apns\",outcome=\"retry\"", "")                                                   \
    X(NOTIFY_APNS_REFUSED, counter, "tidings_push_notifications_total",                            \
      "platform=\"apns\",outcome=\"refused\"", "")                                                 \
    X(NOTIFY_FCM_DELIVERED, counter, "tidings_push_notifications_total",                           \
      "platform=\"fcm\",outcome=\"delivered\"", "")                                                \
    X(NOTIFY_FCM_GONE, counter, "tidings_push_notifications_total",                                \
      "platform=\"fcm\",outcome=\"gone\"", "")                                                     \
    X(NOTIFY_FCM_RETRY, counter, "tidings_push_notifications_total",                               \
      "platform=\"fcm\",outcome=\"retry\"", "")                                                    \
    X(NOTIFY_FCM_REFUSED, counter, "tidings_push_notifications_total",                             \
      "platform=\"fcm\",outcome=\"refused\"", "")                                                  \
    X(NOTIFY_WEBPUSH_DELIVERED, counter, "tidings_push_notifications_total",                       \
      "platform=\"webpush\",outcome=\"delivered\"", "")                                            \
    X(NOTIFY_WEBPUSH_GONE, counter, "tidings_push_notifications_total",                            \
      "platform=\"webpush\",outcome=\"gone\"", "")                                                 \
    X(NOTIFY_WEBPUSH_RETRY, counter, "tidings_push_notifications_total",                           \
      "platform=\"webpush\",outcome=\"retry\"", "")                                                \
    X(NOTIFY_WEBPUSH_REFUSED, counter, "tidings_push_notifications_total",                         \
      "platform=\"webpush\",outcome=\"refused\"", "")                                              \
    X(NOTIFY_MATRIX_DELIVERED, counter, "tidings_push_notifications_total",                        \
      "platform=\"matrix\",outcome=\"delivered\"", "")                                             \
    X(NOTIFY_MATRIX_GONE, counter, "tidings_push_notifications_total",                             \
      "platform=\"matrix\",outcome=\"gone\"", "")                                                  \
    X(NOTIFY_MATRIX_RETRY, counter, "tidings_push_notifications_total",                            \
      "platform=\"matrix\",outcome=\"retry\"", "")                                                 \
    X(NOTIFY_MATRIX_REFUSED, counter, "tidings_push_notifications_total",                          \
      "platform=\"matrix\",outcome=\"refused\"", "")                                               \
    X(NOTIFY_FULL, counter, "tidings_push_notifications_refused_total", "",                        \
      "Pushes refused by PUSH_QUEUE_MAX, _QUEUE_BYTES or _APP_QUEUE_MAX")                          \
    X(NOTIFY_SKIPPED, counter, "tidings_push_skipped_total", "",                                   \
      "Pushes put off because the user was active, each time")                                     \
    X(NOTIFY_NO_ROOM, counter, "tidings_push_jobs_dropped_total", "",                              \
      "Pending pushes dropped because of TIDINGS_PUSH_JOBS_MAX")                                   \
    X(NOTIFY_DIED, counter, "tidings_push_died_total", "", "Pushes that became dead letters")      \
    X(NOTIFY_WAITING, gauge, "tidings_push_waiting", "",                                           \
      "Pending pushes of all instances, one per conversation and device")                          \
    X(NOTIFY_OLDEST_S, gauge, "tidings_push_oldest_seconds", "", "Age of the oldest pending push") \
    X(NOTIFY_DEAD, gauge, "tidings_push_dead", "", "Pushes kept as dead letters")                  \
    X(LOG_DROPPED, counter, "tidings_log_dropped_total", "", "Log lines dropped")

enum metric {
#define METRICS_ENUM(name, type, metric, label, help) METRIC_##name,
    METRICS_TABLE(METRICS_ENUM)
#undef METRICS_ENUM
        METRIC_MAX
};

// X(NAME, metric name, label, help): gauges with one value per item, such as a partition.
#define METRIC_SERIES_TABLE(X)                                                                     \
    X(KAFKA_LAG, "tidings_kafka_lag", "partition",                                                 \
      "Records of a partition not yet processed by the consumer group")                            \
    X(KAFKA_END, "tidings_kafka_end_offset", "partition", "End offset of a partition")

enum metric_series {
#define METRICS_ENUM(name, metric, label, help) METRIC_SERIES_##name,
    METRIC_SERIES_TABLE(METRICS_ENUM)
#undef METRICS_ENUM
        METRIC_SERIES_MAX
};

enum { METRIC_SERIES_SIZE = 1024 };

// X(NAME, metric name, help): duration histograms, from half a millisecond to 10 seconds.
#define METRIC_TIMES_TABLE(X)                                                                      \
    X(DELIVERY, "tidings_delivery_seconds",                                                        \
      "From an event (Postgres' clock) until its frame was written to a connection (local clock)") \
    X(NOTIFY_DELAY, "tidings_push_delay_seconds",                                                  \
      "From a message (Postgres' clock) until the provider answered its push (local clock)")       \
    X(NOTIFY_ANSWER, "tidings_push_answer_seconds",                                                \
      "From sending a push to its provider's answer")                                              \
    X(LOOP_STALL, "tidings_loop_stall_seconds",                                                    \
      "Delay that each turn of an event loop caused, from its due time to its end")

enum metric_times {
#define METRICS_ENUM(name, metric, help) METRIC_TIMES_##name,
    METRIC_TIMES_TABLE(METRICS_ENUM)
#undef METRICS_ENUM
        METRIC_TIMES_MAX
};

void metric_add(enum metric metric, int64_t amount);
void metric_set(enum metric metric, int64_t value); // for a gauge that only one place updates
int64_t metric_value(enum metric metric);

// Sets the gauge of item `index`. `value` must not be negative. Items from METRIC_SERIES_SIZE on
// are not shown.
void metric_series_set(enum metric_series series, int index, int64_t value);
void metric_series_clear(enum metric_series series, int index); // the item is gone

// Adds one duration. A negative one (clocks that differ) counts as 0.
void metric_time(enum metric_times times, int64_t duration_us);

// Counts a finished request. `method` must be a static name from the method table, or "other".
void metric_request(const char *method, const char *error, int64_t duration_us);

// Appends all metrics in Prometheus' text format 0.0.4.
void metrics_print(struct buffer *out);
