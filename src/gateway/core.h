// SPDX-License-Identifier: Apache-2.0
// The state that all parts of the gateway share. Each part keeps its own state to itself; here are
// pointers to it. A file includes only files below it (`./dev lint` checks that). From below:
//
//   core.c        calls in progress, topics
//   connection/   packet.c encoded frames; outlet.c a connection's queue of them; connection.c a
//                 connection from takeover to close, with a table of functions for each kind
//   user/         users.c users and workspaces with connections here; gateway_presence.c tells
//                 Redis of them; presence_subscriptions.c sends them others' presence;
//                 token_sweep.c closes connections with invalid tokens; join_frames.c and
//                 unread_frames.c frames for one user; created_channels.c and missed_marks.c
//                 catch up on updates without a seq
//   channel/      feed.c a channel's events in order; subscribers.c the connections that get them;
//                 focus.c those that read them at once; page.c reads events back; gap.c fetches
//                 missing ones; tail_check.c finds a missing last one; members.c who is in the
//                 channel; held_marks.c marks that wait for their messages; ephemeral.c frames
//                 that are not stored
//   position.c    where a client continues; watermark.c how far all of them have got
//   login.c       whose a connection is; gateway_session.c what it enters and leaves
//   resume/       what a client missed: resume.c on resume_events.c and resume_others.c, on
//                 resume_state.c; backlog.c for a connection, sync.c for a call of events.sync
//   websocket/    handshake.c the request (pure); receive.c bytes to messages; socket.c what both
//                 kinds of WebSocket share; inbound.c a client's messages; positions.c tells it
//                 its position; websocket.c its connection
//   sse/          sse_head.c the request (pure); sse.c its connection
//   socket_mode/  app.c apps with sockets here; app_backlog.c their events that wait in Postgres;
//                 envelope.c events in flight; app_socket.c a connection
//   accept.c      which kind a request asks for; dispatch.c a message of a topic; delivery.c what
//                 happens to an event of a channel, in order; gateway.c timers, start and end
#pragma once

#include "base/list.h"
#include "events/event.h"
#include "gateway/gateway.h"

struct created_channels;
struct envelopes;
struct focuses;
struct gone;
struct tail_check;
struct gaps;
struct missed_marks;
struct feed;
struct feed_hooks;
struct token_sweep;
struct user;
struct presence_subscriptions;
struct watermark;
struct workspace;

struct gateway {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    struct cache *cache;
    struct gateway_options options;
    char device[EVENT_ID_SIZE]; // this gateway's name in Redis
    bool draining;
    bool ended; // being freed: store and cache may be gone
    int asked;  // see gateway_ask(): answers still to come

    struct list connections;
    struct list dirty;
    struct list held; // connections that would be in `dirty`, but wait for Redis to subscribe
    int connection_count, resumable_count; // all, and those open that go by the watermark
    int64_t unknown_told_ms;  // when the log was last told of a message that is no event
    int openings;             // connections whose channels are being read
    struct list opening_next; // logins whose channels are read after those

    struct feed *feeds;
    const struct feed_hooks *feed_hooks; // of all feeds
    int64_t held_bytes;                  // of events that feeds hold
    struct user *users;
    struct workspace *workspaces;
    struct gone *gone; // users whose last connection ended, until presence_grace_ms is over

    // What was missed, or may have been.
    int64_t heard_ms;       // when all topics were last known to be subscribed, and nothing late
    bool is_late;           // what others committed is late: see late.h
    int64_t swept_ms;       // when missed joins were last asked for
    int64_t era;            // of Postgres: see store.h
    bool unread_frames_due; // a feed has unread_frames_due
    bool missed_marks_due;  // a sweep of marks is due
    bool has_held_marks;    // see held_marks.c
    void (*on_late)(struct gateway *gateway, bool is_late); // see late.h

    struct loop_timer *tick_timer;
    struct loop_timer *drain_timer;
    struct loop_timer *check_timer;
    bool check_runs;

    struct tail_check *tail_check;
    struct gaps *gaps;
    struct missed_marks *missed_marks;
    struct created_channels *created_channels;
    struct token_sweep *token_sweep;
    struct focuses *focuses;
    struct presence_subscriptions *presence_subscriptions;
    struct envelopes *envelopes;
    struct watermark *watermark;
};

// To be called with each question to Postgres or Redis, and with its answer: the struct stays until
// the last answer has come, even if the gateway is freed before that.
void gateway_ask(struct gateway *gateway);
bool gateway_answer(struct gateway *gateway); // false: the gateway is gone, do nothing

// Subscribes to a topic of Redis, or ends that.
void gateway_subscribe(struct gateway *gateway, const char *topic, bool subscribe);
// There is a new feed or user, which may have missed something: checks that soon.
void gateway_check_soon(struct gateway *gateway);
// The id in "kind:{id}"; false when the topic is of another kind. `ret_id` has EVENT_ID_SIZE bytes.
bool gateway_topic_id(const char *topic, const char *kind, char *ret_id);
