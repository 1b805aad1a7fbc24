// SPDX-License-Identifier: Apache-2.0
// Counters and gauges as rows of one table, shown at /metrics. Any thread.
#pragma once

#include "base/buffer.h"

#include <stdint.h>

// X(NAME, type, metric name, label text or "", help)
#define METRICS_TABLE(X)                                                                           \
    X(HTTP_CONNECTIONS, gauge, "tidings_http_connections", "", "Open HTTP connections")            \
    X(HTTP_CONNECTIONS_REFUSED, counter, "tidings_http_connections_refused_total",                 \
      "reason=\"full\"",                                                                           \
      "Connections refused for TIDINGS_CONNECTIONS_MAX or the open files' limit")                  \
    X(HTTP_DESCRIPTORS_SHORT, counter, "tidings_http_connections_refused_total",                   \
      "reason=\"open_files\"", "")                                                                 \
    X(HTTP_DEADLINE_HEADERS, counter, "tidings_http_deadline_total", "part=\"headers\"",           \
      "Connections closed because a request came too slowly")                                      \
    X(HTTP_DEADLINE_BODY, counter, "tidings_http_deadline_total", "part=\"body\"", "")             \
    X(HTTP_BAD_REQUESTS, counter, "tidings_http_bad_requests_total", "",                           \
      "Requests refused before they were understood")                                              \
    X(HTTP_BODY_TOO_LARGE, counter, "tidings_http_body_too_large_total", "",                       \
      "Bodies over TIDINGS_BODY_MAX_BYTES")                                                        \
    X(HTTP_REPLY_TOO_LARGE, counter, "tidings_http_reply_too_large_total", "",                     \
      "Replies that did not fit in their bound")                                                   \
    X(RATELIMITED_TOKEN, counter, "tidings_ratelimited_total", "kind=\"token\"",                   \
      "Calls refused by the token's own limit, by the method's, posts by the channel's")           \
    X(RATELIMITED_METHOD, counter, "tidings_ratelimited_total", "kind=\"method\"", "")             \
    X(RATELIMITED_CHANNEL, counter, "tidings_ratelimited_total", "kind=\"channel\"", "")           \
    X(RATE_BUCKETS_DROPPED, counter, "tidings_rate_buckets_dropped_total", "",                     \
      "Counts of calls dropped because of TIDINGS_RATE_BUCKETS_MAX")                               \
    X(TOKENS_DROPPED, counter, "tidings_tokens_dropped_total", "",                                 \
      "Tokens that are asked for anew because of TIDINGS_TOKENS_MAX")                              \
    X(MESSAGES_POSTED, counter, "tidings_messages_posted_total", "", "Messages committed")         \
    X(MESSAGES_DUPLICATE, counter, "tidings_messages_duplicate_total", "",                         \
      "Posts recognised as retries of one committed before")                                       \
    X(POST_BATCHES, counter, "tidings_post_batches_total", "", "Group commits of posts")           \
    X(POST_BATCHES_SPLIT, counter, "tidings_post_batches_split_total", "",                         \
      "Batches run again one by one because one item failed")                                      \
    X(POST_UNKNOWN, counter, "tidings_post_unknown_total", "",                                     \
      "Batches whose commit had to be looked up after a lost connection")                          \
    X(POST_QUEUE_FULL, counter, "tidings_post_queue_full_total", "", "Posts refused: queue full")  \
    X(MARKS, counter, "tidings_marks_total", "", "Read positions committed")                       \
    X(SIDEBAR_ANEW, counter, "tidings_sidebars_read_total", "how=\"anew\"",                        \
      "Users' channels read for unread.sync")                                                      \
    X(SIDEBAR_CHANGES, counter, "tidings_sidebars_read_total", "how=\"changes\"", "")              \
    X(SIDEBAR_DROPPED, counter, "tidings_sidebars_dropped_total", "",                              \
      "Users' channels no longer kept in memory")                                                  \
    X(SIDEBAR_BYTES, gauge, "tidings_sidebars_bytes", "",                                          \
      "Memory of users' channels that are kept")                                                   \
    X(STORE_CONNECTS, counter, "tidings_store_connects_total", "", "Connections made to Postgres") \
    X(STORE_LOST, counter, "tidings_store_lost_total", "", "Connections to Postgres lost")         \
    X(STORE_QUEUE_FULL, counter, "tidings_store_queue_full_total", "",                             \
      "Statements refused because a connection's queue was full")                                  \
    X(CACHE_CONNECTS, counter, "tidings_cache_connects_total", "", "Connections made to Redis")    \
    X(CACHE_LOST, counter, "tidings_cache_lost_total", "", "Connections to Redis lost")            \
    X(CACHE_TIMEOUTS, counter, "tidings_cache_timeouts_total", "", "Redis answers that came late") \
    X(CACHE_FALLBACKS, counter, "tidings_cache_fallbacks_total", "",                               \
      "Reads answered from Postgres because Redis did not know")                                   \
    X(CACHE_REBUILDS, counter, "tidings_cache_rebuilds_total", "", "Redis keys rebuilt")           \
    X(CACHE_REBUILDS_LEFT, counter, "tidings_cache_rebuilds_left_total", "",                       \
      "Rebuilds left to a later read because too many were under way")                             \
    X(COUNTS_DRIFTED, counter, "tidings_unread_drift_total", "",                                   \
      "Counts of Redis that were believed and were not those of Postgres")                         \
    X(COUNTS_FROM_REDIS, counter, "tidings_unread_from_redis_total", "",                           \
      "Counts that Redis told or confirmed")                                                       \
    X(MEMBERS_WALKED, counter, "tidings_members_walked_total", "",                                 \
      "Members that posts and deletes were brought to in Redis")                                   \
    X(WALKS_FAILED, counter, "tidings_walks_failed_total", "",                                     \
      "Walks of members that did not come to their end")                                           \
    X(MEMBERS_BUILT, counter, "tidings_members_built_total", "",                                   \
      "Lists of members built from Postgres")                                                      \
    X(MEMBERS_REPAIRED, counter, "tidings_members_repaired_total", "",                             \
      "Members that a list in Redis had or lacked by mistake")                                     \
    X(HOUSEKEEPING_FAILED, counter, "tidings_housekeeping_failed_total", "",                       \
      "Chores of housekeeping that failed and are tried again")                                    \
    X(OUTBOX_RELAYED, counter, "tidings_outbox_relayed_total", "", "Outbox rows done")             \
    X(OUTBOX_LEFTOVERS, counter, "tidings_outbox_leftovers_total", "",                             \
      "Outbox rows picked up by polling")                                                          \
    X(OUTBOX_QUEUE_FULL, counter, "tidings_outbox_queue_full_total", "",                           \
      "Outbox rows left to polling because the queue in memory was full")                          \
    X(EVENTS_PRODUCED, counter, "tidings_events_produced_total", "", "Events given to the log")    \
    X(EVENTS_FANNED_OUT, counter, "tidings_events_fanned_out_total", "", "Events fanned out")      \
    X(EVENTS_REFUSED, counter, "tidings_events_refused_total", "",                                 \
      "Events whose effects Redis refused, so that what they change was forgotten")                \
    X(EVENTS_POISON, counter, "tidings_events_poison_total", "", "Events put aside after 3 tries") \
    X(EVENTS_UNKNOWN, counter, "tidings_events_unknown_total", "",                                 \
      "Events of an unknown form or kind that were passed over, as of a later release")            \
    X(KAFKA_ERRORS, counter, "tidings_kafka_errors_total", "", "Errors reported by Kafka")         \
    X(SOCKETS_OPEN, gauge, "tidings_ws_connections", "kind=\"rtm\"", "Open sockets")               \
    X(STREAMS_OPEN, gauge, "tidings_ws_connections", "kind=\"sse\"", "")                           \
    X(STREAMS_RESUMED, counter, "tidings_streams_resumed_total", "",                               \
      "Event streams that went on where an earlier one ended")                                     \
    X(EVENTS_RESUMED, counter, "tidings_events_resumed_total", "",                                 \
      "Events read back for resumed event streams")                                                \
    X(SOCKETS_OPENED, counter, "tidings_sockets_opened_total", "", "Sockets opened")               \
    X(SOCKETS_REFUSED, counter, "tidings_sockets_refused_total", "",                               \
      "Sockets refused because TIDINGS_SOCKETS_MAX was reached")                                   \
    X(SOCKETS_SLOW, counter, "tidings_sockets_closed_total", "reason=\"slow\"",                    \
      "Sockets closed by the server")                                                              \
    X(SOCKETS_FRAMES, counter, "tidings_sockets_closed_total", "reason=\"frames\"", "")            \
    X(SOCKETS_REVOKED, counter, "tidings_sockets_closed_total", "reason=\"revoked\"", "")          \
    X(SOCKETS_PROTOCOL, counter, "tidings_sockets_closed_total", "reason=\"protocol\"", "")        \
    X(SOCKETS_GAP, counter, "tidings_sockets_closed_total", "reason=\"gap\"", "")                  \
    X(SOCKETS_SILENT, counter, "tidings_sockets_closed_total", "reason=\"silent\"", "")            \
    X(FRAMES_SENT, counter, "tidings_events_delivered_total", "", "Event frames put to sockets")   \
    X(FRAMES_DOUBLE, counter, "tidings_events_dropped_total", "reason=\"double\"",                 \
      "Events that a gateway dropped")                                                             \
    X(GAPS_FOUND, counter, "tidings_gaps_found_total", "", "Holes found in a channel's events")    \
    X(GAPS_FILLED, counter, "tidings_gaps_filled_total", "", "Holes filled from Postgres")         \
    X(GAPS_TOLD, counter, "tidings_gaps_told_total", "", "Holes that clients were told of")        \
    X(PRESENCE_REFUSED, counter, "tidings_presence_refused_total", "",                             \
      "Requests of sockets for presence with bad or too many ids")                                 \
    X(TYPING_DROPPED, counter, "tidings_typing_dropped_total", "",                                 \
      "Typing of sockets that came too often")                                                     \
    X(LINKS_TOO_MANY, counter, "tidings_links_too_many_total", "",                                 \
      "Connections of apps that were turned away")                                                 \
    X(ENVELOPES_SENT, counter, "tidings_envelopes_sent_total", "", "Envelopes sent to apps")       \
    X(ENVELOPES_AGAIN, counter, "tidings_envelopes_again_total", "",                               \
      "Of those, such that were not acked before")                                                 \
    X(ENVELOPES_DROPPED, counter, "tidings_envelopes_dropped_total", "",                           \
      "Events that an app did not ack in all attempts or in time, or had no room for")             \
    X(PUSH_SENT, counter, "tidings_push_sent_total", "", "Events sent to events_urls of apps")     \
    X(PUSH_AGAIN, counter, "tidings_push_again_total", "", "Of those, retries")                    \
    X(PUSH_TAKEN, counter, "tidings_push_taken_total", "",                                         \
      "Of those, such that were answered 2xx")                                                     \
    X(PUSH_FAILED_TRIES, counter, "tidings_push_dropped_total", "reason=\"tries\"",                \
      "Events for events_urls that were dropped")                                                  \
    X(PUSH_FULL, counter, "tidings_push_dropped_total", "reason=\"full\"", "")                     \
    X(PUSH_EXPIRED, counter, "tidings_push_dropped_total", "reason=\"expired\"", "")               \
    X(PUSH_LOST, counter, "tidings_push_dropped_total", "reason=\"refused\"", "")                  \
    X(PUSH_UNVERIFIED, counter, "tidings_push_unverified_total", "",                               \
      "Challenges that an events_url did not answer")                                              \
    X(PUSH_ADDRESSES, counter, "tidings_push_addresses_refused_total", "",                         \
      "Private or local addresses that an events_url led to")                                      \
    X(LOG_DROPPED, counter, "tidings_log_dropped_total", "", "Log lines dropped")

enum metric {
#define METRICS_ENUM(name, type, metric, label, help) METRIC_##name,
    METRICS_TABLE(METRICS_ENUM)
#undef METRICS_ENUM
        METRIC_MAX
};

void metric_add(enum metric metric, int64_t amount);
int64_t metric_value(enum metric metric);

// Counts one finished request: `method` must be a static name of the method table (or "other").
void metric_request(const char *method, const char *error, int64_t duration_us);

// All of it in Prometheus' text format 0.0.4.
void metrics_print(struct buffer *out);
