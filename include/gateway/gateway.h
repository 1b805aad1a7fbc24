// SPDX-License-Identifier: Apache-2.0
// The part of a loop that holds long-lived connections: sockets, event streams (SSE) and links of
// apps. Takes them over from the front door, sends each of them every event of its channels once
// and in order, fills gaps from Postgres, and accepts posts from sockets. One gateway per loop;
// all on the loop's thread.
//
// Close codes of a socket: 1001 the instance stops; 1002, 1003, 1007, 1009 the client sent
// something invalid; 1008 the client is slow, silent, sent too many frames, or brought an invalid
// ticket (after an error frame); 1012 events were lost and the client does not know the frame `gap`
// (it should reconnect, without a position, and read); 4001 its token was revoked or expired, or
// its user deactivated.
//
// Topics (Redis sharded pub/sub): channel-events:{C}, user-events:{U}, workspace-events:{T}; each
// message is an event in its wire form (events/event.h). session-events:{all} brings ids of tokens,
// users and apps that changed. A channel is followed from the moment its
// first member connects here until `channel_linger_ms` after the last one left.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "cache/cache.h"
#include "events/event_log.h"
#include "http/server.h"
#include "store/store.h"

struct gateway;
struct http_head;

struct gateway_options {
    const struct log *log;      // that brings the events of other instances; NULL: is never behind
    int64_t queue_max_bytes;    // per connection: more unsent than this closes it (slow)
    int64_t message_max_bytes;  // of one client message
    int64_t message_values_max; // JSON values of it
    int64_t frames_per_s;       // that a client may send in the long run, at most 1000
    int64_t frames_burst;       // that a client may send at once
    int64_t ping_interval_ms;
    int64_t pong_timeout_ms; // no byte for ping_interval_ms + this: closed
    int64_t head_check_ms;   // how often heads are compared
    int64_t gap_delay_ms;    // how long a gap may fill by itself before Postgres is asked
    int64_t gap_timeout_ms;  // a gap without progress for so long is told as a gap
    int64_t gap_bytes;       // of events held on the loop
    int gap_events_max;      // events read at once; also events held behind a gap
    int gap_reads_max;       // a gap that needs more reads is told as a gap
    int focus_max;           // channels that one socket may focus at once
    int64_t token_check_ms;  // how often tokens of open sockets are checked without being told
    int64_t channel_linger_ms;
    int64_t presence_ttl_s;    // a user whose instances were silent for so long is away
    int64_t presence_grace_ms; // a user who reconnects within it was never away
    int64_t presence_subs_max; // users whose presence a socket may subscribe to
    int64_t active_s; // how long who says something on a socket is active; 0: it is not told
    int64_t typing_interval_ms; // shortest time between two user_typing of a socket
    int64_t link_ack_ms;        // for an app to ack an envelope; doubled for each further attempt
    int64_t link_attempts_max;  // of one envelope
    int64_t link_queue_max;     // envelopes of an app that wait for an ack
    int64_t link_keep_s;        // how long events wait for an app without a link
    int64_t links_max;          // of an app, on all instances together
    int64_t link_life_s;        // after which a link is told to reconnect
    const char *cors_origins;   // whose pages may read event streams: "a,b", "*" or ""
    int64_t goodbye_ms;         // between goodbye and the close, when the instance stops
    int64_t resume_max_s;       // most age of a position that somebody resumes from
    int64_t resume_max_events;  // of a channel, read back for that; more are told as a gap
    // Called with the id of a token, user or app that another instance has changed; NULL: some may
    // not have been heard.
    void (*on_session)(void *arg, const char *id);
    server_call_fn *on_call; // a post from a socket is a call like any other; its actor is set
    void *arg;
};

NODISCARD int gateway_new(struct loop *loop, struct store *store, struct cache *cache,
                          const struct gateway_options *options, struct gateway **ret_gateway);
// A connection from the front door (see server_takeover_fn).
void gateway_takeover(struct gateway *gateway, int fd, const struct http_head *head);
// Gives this loop's connections the events that their own instance has just committed, so that they
// need not wait for Redis; the same events arriving from Redis later are dropped.
void gateway_offer(struct gateway *gateway, struct event *const *events, size_t count);
// Told of a token, user or app that changed: connections whose token is no good any more end.
void gateway_session_doubt(struct gateway *gateway, const char *id);

// What a user missed since a position, for events.sync. Texts are valid while the function runs.
struct gateway_missed {
    const char *events; // frames, as the members of a JSON array
    size_t events_length;
    const char *gaps; // ids of channels of which events could not be read, likewise
    size_t gaps_length;
    const char *position; // to go on from
    bool has_more;
    bool is_too_old; // nothing is told: anything may have happened
};

// r: 0, or -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_MEMORY (then `missed` is NULL).
typedef void gateway_sync_fn(void *arg, int r, const struct gateway_missed *missed);

// Reads at most `limit` events of the actor's since the position `since`, then calls fn, on a later
// turn, also when the gateway is gone by then. -ERROR_INVALID_POSITION: it is none, or another
// user's; -ERROR_MEMORY (fn is not called then).
NODISCARD int gateway_sync(struct gateway *gateway, const struct actor *actor, const char *since,
                           int64_t limit, gateway_sync_fn *fn, void *arg);

enum { GATEWAY_POSITION_SIZE = 240 };
// Prints the position in `text` anew, as the user's own, to GATEWAY_POSITION_SIZE bytes: digits,
// letters and dots. -ERROR_INVALID_POSITION: it is none, or another user's.
NODISCARD int gateway_position_take(const char *user_id, const char *text, char *ret_text);
// Prints the position of `user_id` of which all transactions below `xid`, of that era, were told by
// `seconds` (Postgres' clock), to GATEWAY_POSITION_SIZE bytes.
void gateway_position_print(const char *user_id, int64_t xid, int64_t era, int64_t seconds,
                            char *ret_text);
// Begins an orderly end: says goodbye to all connections, closes them with 1001 `goodbye_ms` later,
// and refuses new ones.
void gateway_drain(struct gateway *gateway);
// How many connections there are, in whatever state.
int gateway_sockets(const struct gateway *gateway);
// Closes the remaining connections; takes NULL. After loop_run() returned, before or after the
// store and the cache are freed.
void gateway_free(struct gateway *gateway);
