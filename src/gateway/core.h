// SPDX-License-Identifier: Apache-2.0
// What all parts of the gateway share, and what each of them keeps here for itself.
//
// The parts, each with a header of its own:
//
//   connections   accept.c the request's head; connection.c takeover to close, with a table of
//                 functions for each kind; outlet.c its queue of packet.c's packets; login.c whose
//                 it is; session.c its place; people.c users, workspaces, and what their topics
//                 bring
//   websocket/    handshake.c the request (pure); receive.c bytes to messages; socket.c what apps'
//                 sockets do as well; websocket.c a client's; inbound.c its messages
//   sse/          sse_head.c the request (pure); sse.c an event stream; sse_backlog.c tells it
//                 what it missed
//   resume/       resume.c what somebody missed, in parts: resume_events.c and resume_others.c;
//                 sync.c calls of events.sync
//   socket_mode/  link.c an app's connection; app.c whose links are here; envelope.c the events
//   that
//                 apps get; kept.c those that wait in Postgres
//   positions     position.c where a stream of events continues; watermark.c how far all have got
//   a channel     stream.c its events in order; hole.c fetches missing ones, page.c reads them;
//                 heads.c notices them; members.c who is in it; ephemeral.c what is not stored
//   a user        held_marks.c marks that came before their messages; marks.c and created.c those
//                 that did not come; changed.c unread counts; joined.c their joins; focus.c what is
//                 read at once; presence.c and watch.c; tokens.c whether a token is still good
#pragma once

#include "created.h"
#include "focus.h"
#include "heads.h"
#include "hole.h"
#include "marks.h"
#include "members.h"
#include "socket_mode/app.h"
#include "tokens.h"
#include "watch.h"
#include "watermark.h"

#include "base/list.h"
#include "events/event.h"
#include "gateway/gateway.h"

struct gone;
struct stream;
struct user;
struct workspace;

struct gateway {
    struct loop *loop;
    struct store *store;
    struct cache *cache;
    struct gateway_options options;
    struct list connections;
    struct list dirty;
    int64_t held_bytes; // of events that streams hold
    struct list held;   // connections that would be in `dirty`, but wait for Redis to subscribe
    int connection_count, sse_count; // all, and the event streams that are open
    int openings;                    // connections whose channels are being read
    struct list opening_next;        // logins whose channels are read after those
    struct stream *streams;
    struct user *users;
    struct workspace *workspaces;
    struct gone *gone; // users whose last connection ended, until presence_grace_ms is over
    char device[EVENT_ID_SIZE]; // this gateway's name in Redis
    bool draining;
    bool ended;              // being freed: store and cache may be gone
    int asked;               // see gateway_ask(): answers still to come
    int64_t heard_ms;        // when all topics were last known to be subscribed, and nothing late
    bool is_late;            // what others committed is late: see late.h
    int64_t unknown_told_ms; // when the log was last told of a message that is no event
    int64_t swept_ms;        // when missed joins were last asked for
    int64_t era;             // of Postgres: see store.h
    bool changes_missed;     // a stream has changed_missed
    struct loop_timer *tick_timer;
    struct loop_timer *drain_timer;
    struct heads heads;
    struct holes holes;
    struct members members;
    struct marks marks;
    struct created created;
    struct tokens tokens;
    struct focuses focuses;
    struct watching watching;
    struct envelopes envelopes;
    struct watermark watermark;
};

// To be called with each question to Postgres or Redis, and with its answer: the struct stays until
// the last answer has come, even if the gateway is freed before that.
void gateway_ask(struct gateway *gateway);
bool gateway_answer(struct gateway *gateway); // false: the gateway is gone, do nothing
