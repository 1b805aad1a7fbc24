// SPDX-License-Identifier: Apache-2.0
// One connection, from takeover to close. What the kinds of connection do differently (WebSocket,
// event stream, Socket Mode) stands in one table of functions for each: struct connection_ops.
// Nobody else asks of which kind a connection is.
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
    CONNECTION_LOGIN, // Postgres is asked who this is (login.c): nothing is read
    CONNECTION_OPEN,
    CONNECTION_DOOMED,  // to be closed at the end of the turn
    CONNECTION_CLOSING, // Close sent; waits for the peer's end
    CONNECTION_DEAD,    // freed at the end of the turn
};

enum announcement {
    ANNOUNCE_DRAIN,  // the instance stops: the connection ends soon
    ANNOUNCE_REVOKED // its token is no longer valid: it ends at once
};

// What one kind of connection does. All is called on the gateway's loop. A member that is NULL does
// nothing, and returns false.
struct connection_ops {
    enum metric open_metric; // counts the open ones
    bool must_answer;        // a peer that says nothing for too long is closed

    // Login. The statement that reads the user's channels; adds its parameters behind the user's
    // id.
    const struct statement *(*channels)(struct connection *c, struct params *params);
    // The owner was asked for (result `r`; `known`: found). The HTTP status to refuse it with, or
    // 0.
    int (*admit)(struct connection *c, int r, bool known);
    // `reply` is what was given to login_ticket(): the answer to a good request.
    void (*refuse)(struct connection *c, int status, const char *reply);
    void (*open)(struct connection *c, const struct result *channels, const char *reply);

    // Takes bytes from the peer; never NULL. Negative: no more are to be taken.
    int (*input)(struct connection *c, const char *data, size_t length);
    void (*flushed)(struct connection *c); // at the end of a turn: sent what the peer takes
    void (*tick)(struct connection *c, int64_t now_ms); // while OPEN, every CONNECTION_TICK_MS
    void (*ping)(struct connection *c, int64_t now_ms); // shows the peer that the server is there

    // While OPEN.
    void (*send)(struct connection *c, struct packets *packets); // a frame; NULL: gets none
    // An event of a channel in which the connection has a subscriber; `packets` is its frame.
    void (*deliver)(struct connection *c, const struct feed *feed, const struct feed_item *item,
                    struct packets *packets);
    // Events of a channel could not be read back; `packets` tells which. In any state.
    void (*gap)(struct connection *c, struct packets *packets);
    // Whether the connection is still to be sent what it missed in the channel of an event about
    // what its user has read. The event need not be sent: what it tells comes then, too.
    bool (*awaits)(struct connection *c, const struct event *event);
    // The user came (back) into the channel of `feed`. True while the connection is still being
    // told what was before: then of the join in its turn, too, and its subscriber waits for that.
    bool (*joins)(struct connection *c, const struct feed *feed);
    void (*settle)(struct connection *c); // there is a new watermark, or all it missed was told
    void (*announce)(struct connection *c, enum announcement what); // in any state

    // Queues the last words of a doomed connection in place of its backlog, then calls
    // connection_end().
    void (*end)(struct connection *c);
    // Leaves everything that it is in: nothing more is sent to it. May be called again.
    void (*leave)(struct connection *c);
    void (*free)(void *kind); // c->kind, which is not NULL
};

// A place in a feed, from the connection's side: see struct feed_subscriber.
struct subscription {
    struct feed *feed;
    uint32_t subscriber; // index in feed->subscribers
};

struct connection {
    uint32_t tag;
    struct gateway *gateway;
    const struct connection_ops *ops; // of its kind
    void *kind;                       // what its kind keeps of it, or NULL
    struct list link;                 // in gateway->connections
    struct list dirty_link; // while there is something to send or to end; in gateway->dirty or held
    int64_t topics_asked;   // nothing is sent before Redis has confirmed so many
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
    bool native;              // wants Tidings' own frames
    bool is_resumable;        // is given positions to continue from: the watermark goes by it
    bool ignores_input;       // what still arrives is thrown away
    bool peer_closed;         // its Close arrived, or its end of file
    bool manual_away;         // of its user, when it connected
    const char *close_reason; // static text
    int64_t deadline_ms;      // of the close
    int64_t heard_ms;
    int64_t pinged_ms;
    int64_t asked_ms;       // when Postgres was asked whose it is
    int64_t expires_ms;     // its token; 0: never
    bool is_doubted;        // its token may have changed while it was opened
    char id[EVENT_ID_SIZE]; // the origin of its posts
    struct actor actor;
};

// A connection that was taken over, in CONNECTION_LOGIN, and of no kind yet. NULL: no memory; `fd`
// is closed then.
struct connection *connection_adopt(struct gateway *gateway, int fd);
void connection_send(struct connection *c, struct packets *packets); // while OPEN; else nothing
void connection_send_text(struct connection *c, const char *text, size_t length);
// Queues a packet as it is, for `ops` to send with; NULL (no memory) dooms the connection.
void connection_push(struct connection *c, struct packet *packet);
// Sends the gap to a native connection. Others do not know of gaps and are closed: their clients
// begin anew and read what is there.
void connection_gap(struct connection *c, struct packets *packets);
// See ops->awaits.
bool connection_awaits(struct connection *c, const struct event *event);
// Ends it at the end of this turn, with Close. `reason` is static text. Safe anywhere.
void connection_doom(struct connection *c, enum close_code code, const char *reason);
// The same, and counts it in `metric`, unless the connection is ending already.
void connection_doom_counted(struct connection *c, enum metric metric, enum close_code code,
                             const char *reason);
void connection_slow(struct connection *c); // the same, for one that does not read
// Answers the request with an HTTP status and ends.
void connection_refuse(struct connection *c, const char *reply);
void connection_begin(struct connection *c); // OPEN, but sends nothing yet
// From now on it only ends: what is queued goes out, what comes is thrown away once Close was
// received.
void connection_end(struct connection *c);
void connection_flush(struct connection *c); // at the end of the turn
enum { CONNECTION_TICK_MS = 1000 };
void connection_tick(struct connection *c, int64_t now_ms); // every CONNECTION_TICK_MS
void connection_abort(struct connection *c);                // ends it without a Close
void connection_mark_dirty(struct connection *c);
