// SPDX-License-Identifier: Apache-2.0
// The part of a loop that holds its sockets and event streams (SSE): takes connections over from
// the front door,
// gives every event of the channels they may see to each of them once, in order, fills holes from
// Postgres, and takes posts from them. One gateway per loop; all on the loop's thread.
//
// A socket is closed with: 1001 the instance stops; 1002, 1003, 1007, 1009 what the client sent;
// 1008 slow, silent, too many frames, or a ticket that is no good (after an error frame); 1012
// events were lost and it does not know `gap` (connect anew and read); 4001 its token was revoked
// or expired, or its user made inactive.
//
// Topics (Redis sharded pub/sub): channel-events:{C}, user-events:{U}, workspace-events:{T}; each
// message is an event in its wire form (events/event.h). A channel is followed from the moment its
// first member connects here until `channel_linger_ms` after the last one left.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "cache/cache.h"
#include "events/event.h"
#include "http/server.h"
#include "store/store.h"

struct gateway;

struct gateway_options {
    int64_t queue_max_bytes;   // per connection: more unsent than this closes it (slow)
    int64_t message_max_bytes; // of one client message
    int64_t frames_per_s;      // that a client may send for long, at most 1000
    int64_t frames_burst;      // and at once
    int64_t ping_interval_ms;
    int64_t pong_timeout_ms; // no byte for the two together: closed
    int64_t head_check_ms;   // how often heads are compared
    int64_t hole_delay_ms;   // how long a hole may fill by itself before Postgres is asked
    int64_t hole_timeout_ms; // without progress: told as a gap
    int hole_events_max;     // read at once, and held at most
    int hole_reads_max;      // a hole that would take more of them is a gap
    int focus_max;           // channels that one socket may focus at once
    int64_t token_check_ms;  // how often tokens of open sockets are checked
    int64_t channel_linger_ms;
    int64_t presence_ttl_s;     // who was not heard of for so long is away
    int64_t presence_grace_ms;  // who comes back within it never was
    int64_t presence_subs_max;  // users that a socket may hear of
    int64_t typing_interval_ms; // of a socket's user_typing
    int64_t link_ack_ms;        // for an app to ack an envelope; each time twice as long
    int64_t link_attempts_max;  // of one envelope
    int64_t link_queue_max;     // envelopes of an app that wait for an ack
    int64_t link_keep_s;        // events for an app without a link
    int64_t links_max;          // of an app, on all instances
    int64_t link_life_s;        // of an app's connection; then it is told to connect anew
    const char *cors_origins;   // whose pages may read event streams: "a,b", "*" or ""
    int64_t goodbye_ms;         // between goodbye and the close, when the instance stops
    int64_t resume_max_s;       // how old a position may be that an event stream goes on from
    int64_t resume_max_events;  // of a channel, read back for it; more are a gap
    server_call_fn *on_call; // posts from sockets are calls like any other, the actor already known
    void *arg;
};

NODISCARD int gateway_new(struct loop *loop, struct store *store, struct cache *cache,
                          const struct gateway_options *options, struct gateway **ret_gateway);
// A connection from the front door (see server_takeover_fn).
void gateway_takeover(struct gateway *gateway, int fd, const char *head, size_t length);
// Events that this instance has just committed, for its own connections: they need not wait for
// them to come back from Redis, and what comes from there is then a double.
void gateway_offer(struct gateway *gateway, struct event *const *events, size_t count);
// Ordered end: goodbye to all, then Close 1001; new ones are refused.
void gateway_drain(struct gateway *gateway);
// How many connections there are, in whatever state.
int gateway_sockets(const struct gateway *gateway);
// Closes what is left; takes NULL. After loop_run() returned; store and cache may go before or
// after it.
void gateway_free(struct gateway *gateway);
