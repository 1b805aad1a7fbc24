// SPDX-License-Identifier: Apache-2.0
// What all parts of the gateway share. What a part keeps for itself it alone sees: here are
// pointers. A file includes files below it only (`./dev lint` checks that). From below:
//
//   core.c        questions under way, topics
//   connections   packet.c frames; outlet.c a queue of them; connection.c takeover to close, with a
//                 table of functions for each kind
//   users         users.c users and workspaces here; presence.c tells Redis of them; watch.c who
//                 wants to hear of others; tokens.c whether a token is still good
//   a channel     stream.c its events in order, and whom it tells of them; seats.c the connections
//                 that get them, focus.c those that read them at once; page.c reads events back;
//                 hole.c fetches missing ones; heads.c notices them; joined.c frames for who comes
//                 and goes; members.c who is in it; ephemeral.c what is not stored
//   without seq   held_marks.c marks that came before their messages; changed.c unread counts;
//                 created.c new channels; marks.c what of these did not come
//   positions     position.c where a stream of events continues; watermark.c how far all have got
//   entering      login.c whose a connection is; session.c its place
//   resume/       what somebody missed: resume.c goes through it, on resume_events.c and
//                 resume_others.c, on resume_state.c; backlog.c for a connection, sync.c for a call
//                 of events.sync
//   websocket/    handshake.c the request (pure); receive.c bytes to messages; socket.c what apps'
//                 sockets do as well; inbound.c a client's messages; positions.c where it can be
//                 continued; websocket.c its connection
//   sse/          sse_head.c the request (pure); sse.c its connection
//   socket_mode/  app.c apps that have links here; kept.c events that wait for them in Postgres;
//                 envelope.c events on their way; link.c a connection
//   above all     accept.c which kind a request asks for; dispatch.c a message of a topic;
//   delivery.c what
//                 follows an event of a channel; gateway.c every second, and the end
#pragma once

#include "base/list.h"
#include "events/event.h"
#include "gateway/gateway.h"

struct created;
struct envelopes;
struct focuses;
struct gone;
struct heads;
struct holes;
struct marks;
struct stream;
struct stream_hooks;
struct tokens;
struct user;
struct watching;
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

    struct stream *streams;
    const struct stream_hooks *stream_hooks; // of all streams
    int64_t held_bytes;                      // of events that streams hold
    struct user *users;
    struct workspace *workspaces;
    struct gone *gone; // users whose last connection ended, until presence_grace_ms is over

    // What was missed, or may have been.
    int64_t heard_ms;    // when all topics were last known to be subscribed, and nothing late
    bool is_late;        // what others committed is late: see late.h
    int64_t swept_ms;    // when missed joins were last asked for
    int64_t era;         // of Postgres: see store.h
    bool changes_missed; // a stream has changed_missed
    bool marks_missed;   // a sweep of marks is due
    bool marks_held;     // see held_marks.c
    void (*on_late)(struct gateway *gateway, bool is_late); // see late.h

    struct loop_timer *tick_timer;
    struct loop_timer *drain_timer;
    struct loop_timer *check_timer;
    bool check_runs;

    struct heads *heads;
    struct holes *holes;
    struct marks *marks;
    struct created *created;
    struct tokens *tokens;
    struct focuses *focuses;
    struct watching *watching;
    struct envelopes *envelopes;
    struct watermark *watermark;
};

// To be called with each question to Postgres or Redis, and with its answer: the struct stays until
// the last answer has come, even if the gateway is freed before that.
void gateway_ask(struct gateway *gateway);
bool gateway_answer(struct gateway *gateway); // false: the gateway is gone, do nothing

// Subscribes to a topic of Redis, or ends that.
void gateway_follow(struct gateway *gateway, const char *topic, bool follow);
// There is a new stream or user, which may have missed something: checks that soon.
void gateway_check_soon(struct gateway *gateway);
// The id in "kind:{id}"; false when the topic is of another kind. `ret_id` has EVENT_ID_SIZE bytes.
bool gateway_topic_id(const char *topic, const char *kind, char *ret_id);
