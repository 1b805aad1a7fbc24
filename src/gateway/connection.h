// SPDX-License-Identifier: Apache-2.0
// One connection, from takeover to close: a WebSocket, an event stream, or a link of an app.
#pragma once

#include "outlet.h"

#include "base/actor.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "base/metrics.h"
#include "events/event.h"

struct app;
struct gateway;
struct loop_watch;
struct packets;
struct receiver;
struct sse;
struct stream;
struct ticket;
struct user;
struct watch;

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
    CONNECTION_HEAD,   // the request head is being read
    CONNECTION_TICKET, // Postgres is asked who this is
    CONNECTION_OPEN,
    CONNECTION_DOOMED,  // to be closed at the end of the turn
    CONNECTION_CLOSING, // Close sent; waits for the peer's end
    CONNECTION_DEAD,    // freed at the end of the turn
};

// A place in a stream, from the connection's side: see struct seat.
struct follow {
    struct stream *stream;
    uint32_t seat; // index in stream->seats
};

enum link_state {
    LINK_NEW, // hello not sent yet
    LINK_READY,
    LINK_WARNED,   // told that it ends soon
    LINK_REFRESHED // told to reconnect
};

struct connection {
    struct gateway *gateway;
    struct list link;       // in gateway->connections
    struct list dirty_link; // while there is something to send or to end; in gateway->dirty or held
    int64_t subscriptions;  // nothing is sent before Redis has confirmed so many
    struct list user_link;
    struct list calls; // posts in work
    struct loop_watch *watch;
    struct user *user; // while it is in user->connections
    struct follow *follows;
    uint32_t follow_count;
    uint32_t follow_capacity;
    struct buffer input;       // the request head, and bytes that came after it before hello
    struct ticket *ticket;     // while CONNECTION_TICKET
    struct sse *sse;           // of an event stream; else NULL
    struct receiver *receiver; // NULL unless a client's message has partly arrived
    struct outlet outlet;
    int fd;
    int call_count;
    int focus_count;
    enum connection_state state;
    uint16_t close_code;
    bool native;              // wants Tidings' own frames
    bool is_deaf;             // what still arrives is thrown away
    bool peer_closed;         // its Close arrived, or its end of file
    const char *close_reason; // static text
    int64_t deadline_ms;      // of the handshake, or of the close
    int64_t heard_ms;
    int64_t pinged_ms;
    int64_t frames_due_us; // for the limit of frames: when those sent so far are paid for
    bool is_link;          // a connection of an app
    struct app *app;       // of a link, while it is open
    struct list app_link;
    enum link_state link_state;
    int64_t link_ends_ms;
    struct list watch_asks; // its questions about presence that are not answered yet
    struct watch **watches; // the users whose presence it subscribed to (not loop watches)
    uint32_t watch_count;
    bool presence_due;      // one of them changed
    bool presence_all;      // it was told of none of them yet
    bool manual_away;       // of its user, when it connected
    int64_t typed_ms;       // when it last sent user_typing
    char id[EVENT_ID_SIZE]; // the origin of its posts
    struct actor actor;
};

void connection_accept(struct gateway *gateway, int fd, const char *head, size_t length);
void connection_send(struct connection *c, struct packets *packets); // while OPEN; else nothing
void connection_send_text(struct connection *c, const char *text, size_t length);
// Sends Close and ends it, at the end of this turn. `reason` is static text. Safe anywhere.
void connection_doom(struct connection *c, enum close_code code, const char *reason);
// The same, and counts it in `metric`, unless the connection is ending already.
void connection_doom_counted(struct connection *c, enum metric metric, enum close_code code,
                             const char *reason);
void connection_slow(struct connection *c); // the same, for one that does not read
// Answers the handshake with an HTTP status and ends.
void connection_refuse(struct connection *c, const char *reply);
void connection_open(struct connection *c,
                     const char *reply);     // 101 and hello, then what came early
void connection_begin(struct connection *c); // OPEN, but sends nothing yet
// Upgrades, sends `text` as the only frame, and closes.
void connection_expire(struct connection *c, const char *reply, const char *text);
void connection_closed(struct connection *c); // ends it; its Close is already queued
void connection_flush(struct connection *c);  // at the end of the turn
enum { CONNECTION_TICK_MS = 1000 };
void connection_tick(struct connection *c, int64_t now_ms); // every CONNECTION_TICK_MS
void connection_abort(struct connection *c);                // ends it without a Close
void connection_mark_dirty(struct connection *c);
