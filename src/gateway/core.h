// SPDX-License-Identifier: Apache-2.0
// The state shared by all parts of the gateway, and pointers to the parts' own. A file includes
// only files further up in this list (`./dev lint` checks that):
//
//   core.c        requests in flight, topics
//   connection/   packet.c encoded frames; outlet.c a connection's queue of packets; connection.c a
//                 connection from takeover to close, with a table of functions per kind
//   user/         users.c users and workspaces with connections here; gateway_presence.c writes
//                 their presence to Redis; presence_subscriptions.c sends them others' presence;
//                 token_sweep.c closes connections with invalid tokens; join_frames.c and
//                 unread_frames.c frames for one user; created_channels.c and missed_marks.c
//                 catch up on updates without a seq
//   channel/      feed.c a channel's events in order; subscribers.c the connections that receive
//                 them; focus.c sockets that show the channel; page.c reads events back; gap.c
//                 fills gaps; tail_check.c finds a missing last event; members.c the channel's
//                 members; held_marks.c marks that wait for their messages; ephemeral.c frames
//                 that are not stored
//   position.c    where a client continues; watermark.c what all clients have been sent
//   login.c       the actor of a connection; gateway_session.c its user and channels
//   resume/       what a client missed: resume.c, resume_events.c, resume_others.c and
//                 resume_state.c; backlog.c for a connection, sync.c for a call of events.sync
//   websocket/    handshake.c the request (pure); receive.c bytes to messages; socket.c common to
//                 both kinds of WebSocket; inbound.c a client's messages; positions.c frames of
//                 type `position`; websocket.c a client's connection
//   sse/          sse_head.c the request (pure); sse.c an event stream's connection
//   socket_mode/  app.c apps with sockets here; app_backlog.c events that wait in Postgres;
//                 envelope.c events in flight; app_socket.c an app's connection
//   accept.c      dispatches a request by kind; dispatch.c a message of a topic; delivery.c the
//                 effects of an event of a channel, in order; gateway.c timers, start and end
#pragma once

#include "base/list.h"
#include "events/event.h"
#include "gateway/gateway.h"

struct created_channels;
struct envelopes;
struct focuses;
struct offline_user;
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
    int asked;  // answers still to come: see gateway_ask()

    struct list connections;
    struct list dirty; // connections with something to send, or to close
    struct list held;  // dirty connections that wait until Redis has confirmed their topics
    int connection_count, resumable_count; // all; open ones with a position
    int64_t unknown_logged_ms;             // when the log last reported a message that is no event
    int openings;                          // connections whose channels are being read
    struct list opening_next;              // logins whose channels are read next

    struct feed *feeds;
    const struct feed_hooks *feed_hooks; // of all feeds
    int64_t held_bytes;                  // of held events in all feeds
    struct user *users;
    struct workspace *workspaces;
    struct offline_user
        *offline_users; // users whose last connection ended less than presence_grace_ms ago

    // Catch-up on what was missed, or may have been.
    int64_t in_sync_ms;     // when all topics were last subscribed and no event was late
    bool is_late;           // events of other instances are late: see late.h
    int64_t swept_ms;       // when missed joins were last read
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

// Call them with each request to Postgres or Redis, and in its callback: the struct lives until the
// last answer has arrived, even if gateway_free() is called earlier.
void gateway_ask(struct gateway *gateway);
bool gateway_answer(struct gateway *gateway); // false: the gateway is gone, do nothing

// Subscribes to a topic of Redis, or unsubscribes.
void gateway_subscribe(struct gateway *gateway, const char *topic, bool subscribe);
// A new feed or user may have missed something: checks soon.
void gateway_check_soon(struct gateway *gateway);
// The id in "kind:{id}"; false: a topic of another kind. `ret_id` has EVENT_ID_SIZE bytes.
bool gateway_topic_id(const char *topic, const char *kind, char *ret_id);
