// SPDX-License-Identifier: Apache-2.0
// One connection, from takeover to close. The differences between the kinds (WebSocket, event
// stream, app socket) are in struct connection_ops, one table per kind; no other code checks a
// connection's kind.
#pragma once

#include "outlet.h"

#include "base/actor.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "base/metrics.h"
#include "events/event.h"

struct connection;
struct gateway;
struct login;
struct loop_io;
struct packets;
struct params;
struct result;
struct statement;
struct feed;
struct feed_item;
struct user;

enum close_code {
    CLOSE_GOING_AWAY = 1001,
    CLOSE_PROTOCOL = 1002,
    CLOSE_UNSUPPORTED = 1003,
    CLOSE_POLICY = 1008,
    CLOSE_TOO_BIG = 1009,
    CLOSE_RESTART = 1012,
    CLOSE_REVOKED = 4001,
};

enum connection_state {
    CONNECTION_LOGIN, // the actor is being read (login.c); no input is read
    CONNECTION_OPEN,
    CONNECTION_CLOSE_DUE, // to be closed at the end of the turn
    CONNECTION_CLOSING,   // Close sent; waits for the peer to close
    CONNECTION_DEAD,      // freed at the end of the turn
};

enum announcement {
    ANNOUNCE_DRAIN,  // the instance stops: the connection ends soon
    ANNOUNCE_REVOKED // its token is no longer valid: it ends at once
};

// The functions of one kind of connection, called on the gateway's loop. A member that is NULL does
// nothing and returns false.
struct connection_ops {
    enum metric open_metric; // the gauge of open connections
    bool must_answer;        // closes a peer that is silent for too long

    // Login. Returns the statement that reads the user's channels; appends its parameters after the
    // user's id.
    const struct statement *(*channels)(struct connection *c, struct params *params);
    // The ticket or token was looked up, with result `r`; `known`: it is valid, and c->actor is
    // set. Returns the HTTP status to refuse the connection with, or 0.
    int (*admit)(struct connection *c, int r, bool known);
    // `reply` as passed to login_ticket(): the answer to an accepted request.
    void (*refuse)(struct connection *c, int status, const char *reply);
    void (*open)(struct connection *c, const struct result *channels, const char *reply);

    // Takes bytes from the peer; never NULL. Negative: further input is ignored.
    int (*input)(struct connection *c, const char *data, size_t length);
    void (*flushed)(struct connection *c); // at the end of a turn: the queue was written
    void (*tick)(struct connection *c, int64_t now_ms); // while OPEN, every CONNECTION_TICK_MS
    void (*ping)(struct connection *c, int64_t now_ms); // keep-alive to the peer

    // While OPEN.
    void (*send)(struct connection *c, struct packets *packets); // a frame; NULL: receives none
    // An event of a subscribed channel; `packets` is its frame.
    void (*deliver)(struct connection *c, const struct feed *feed, const struct feed_item *item,
                    struct packets *packets);
    // Events of a channel could not be read back; `packets` is the frame `gap`. In any state.
    void (*gap)(struct connection *c, struct packets *packets);
    // `event` is a mark, or about a thread. True while the backlog still includes its channel: the
    // event need not be sent, since the backlog will send the same.
    bool (*awaits)(struct connection *c, const struct event *event);
    // The user joined the channel of `feed`, perhaps again. True while the backlog still includes
    // the channel: the join is sent in its turn, and the subscription waits until then.
    bool (*joins)(struct connection *c, const struct feed *feed);
    void (*settle)(struct connection *c); // a new watermark, or the end of the backlog
    void (*announce)(struct connection *c, enum announcement what); // in any state

    // Replaces the queue of a connection that closes by a last frame, then calls connection_end().
    void (*end)(struct connection *c);
    // Leaves user, channels and backlog: nothing more is sent. May be called again.
    void (*leave)(struct connection *c);
    void (*free)(void *kind); // c->kind, which is not NULL
};

// A subscription to a feed, from the connection's side: see struct feed_subscriber.
struct subscription {
    struct feed *feed;
    uint32_t subscriber; // index in feed->subscribers
};

struct connection {
    uint32_t tag;
    struct gateway *gateway;
    const struct connection_ops *ops; // of its kind
    void *kind;                       // state of its kind, or NULL
    struct list link;                 // in gateway->connections
    struct list dirty_link;           // in gateway->dirty or held: something to send, or to close
    int64_t topics_asked; // nothing is sent until Redis has confirmed so many subscriptions
    struct list user_link;
    struct loop_io *io;
    struct user *user; // while it is in user->connections
    struct subscription *subscriptions;
    uint32_t subscription_count;
    uint32_t subscription_capacity;
    struct login *login; // while CONNECTION_LOGIN
    struct outlet outlet;
    int fd;
    enum connection_state state;
    uint16_t close_code;
    bool native;              // receives frames that Slack does not have
    bool is_resumable;        // receives positions: the watermark covers it
    bool ignores_input;       // discards further input
    bool peer_closed;         // the peer's Close arrived
    bool manual_away;         // of its user, when it connected
    const char *close_reason; // static text
    int64_t deadline_ms;      // of the close
    int64_t input_ms;         // when input last arrived
    int64_t pinged_ms;
    int64_t asked_ms;       // when the login began
    int64_t expires_ms;     // of its token; 0: never
    bool is_suspect;        // its token may have changed during the login
    char id[EVENT_ID_SIZE]; // the origin of its posts
    struct actor actor;
};

// Takes over `fd`: a new connection in CONNECTION_LOGIN, not of any kind yet. NULL: out of memory,
// and `fd` is closed.
struct connection *connection_adopt(struct gateway *gateway, int fd);
void connection_send(struct connection *c, struct packets *packets); // does nothing unless OPEN
// The same with a frame of the type, as of struct packets.
void connection_send_text(struct connection *c, const char *type, const char *text, size_t length);
// Queues a packet; for use by `ops`. NULL (out of memory) closes the connection.
void connection_push(struct connection *c, struct packet *packet);
// Sends a frame `gap` to a native connection. Others do not know that frame and are closed: their
// clients reconnect and read the history.
void connection_gap(struct connection *c, struct packets *packets);
// See ops->awaits.
bool connection_awaits(struct connection *c, const struct event *event);
// Closes it at the end of this turn. `reason` is static text. May be called anywhere.
void connection_close(struct connection *c, enum close_code code, const char *reason);
// Also counts it in `metric`, unless the connection is ending already.
void connection_close_counted(struct connection *c, enum metric metric, enum close_code code,
                              const char *reason);
void connection_slow(struct connection *c); // the same, for a peer that does not read
// Answers the request with `reply`, an HTTP error, and ends.
void connection_refuse(struct connection *c, const char *reply);
void connection_begin(struct connection *c); // becomes OPEN; sends once its topics are confirmed
// CONNECTION_CLOSING: the queue is still sent; input is read only until the peer's Close.
void connection_end(struct connection *c);
void connection_flush(struct connection *c);               // at the end of the turn
int64_t connection_expires_at(const struct connection *c); // in seconds since 1970
enum { CONNECTION_TICK_MS = 1000 };
void connection_tick(struct connection *c, int64_t now_ms); // every CONNECTION_TICK_MS
void connection_abort(struct connection *c);                // closes it without a Close frame
void connection_mark_dirty(struct connection *c);
