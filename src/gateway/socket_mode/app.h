// SPDX-License-Identifier: Apache-2.0
// Apps with connections here (Socket Mode): their connections, called links, and the envelopes that
// are on their way to them.
#pragma once

#include "../websocket/receive.h"

#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct app;
struct connection;
struct gateway;
struct kept;
struct loop_timer;

enum { UUID_SIZE = 37 };

enum app_socket_state {
    APP_SOCKET_NEW, // hello not sent yet
    APP_SOCKET_READY,
    APP_SOCKET_WARNED,   // told that it ends soon
    APP_SOCKET_REFRESHED // told to reconnect
};

// One connection of an app.
struct app_socket {
    struct connection *connection;
    struct socket socket;
    struct app *app; // while it is open
    struct list app_link;
    enum app_socket_state state;
    int64_t ends_ms;
};

// An app with links here.
struct app {
    UT_hash_handle hh;
    struct gateway *gateway;
    char id[EVENT_ID_SIZE];
    struct list sockets;   // the first is the next to get an envelope
    struct list envelopes; // sent by this gateway, or about to be, and not acked
    int envelope_count;
    char last_channel[EVENT_ID_SIZE]; // of the last event that was offered
    int64_t last_seq;                 // the same
    int64_t counted_ms;               // when Redis was last told of the links
};

enum envelope_state {
    ENVELOPE_ASKED, // Redis is asked whether this gateway makes the first attempt
    ENVELOPE_SENT,  // not acked yet
    ENVELOPE_OVER,  // its time is over; a late ack still counts
};

struct envelope {
    struct list link; // in its app's envelopes, or among those acked
    char app_id[EVENT_ID_SIZE];
    char id[UUID_SIZE];
    char channel_id[EVENT_ID_SIZE]; // "": acked, and only the id is known
    int64_t seq;                    // negative: of an app_mention (chat/app_mention.h)
    int64_t happened_us;
    int64_t due_ms; // the end of its state
    int64_t attempt;
    enum envelope_state state;
    bool returns;                  // see app_backlog_return()
    const struct app_socket *sent; // by which it was sent, while that exists
    size_t length;
    char frame[];
};

struct envelopes {
    struct app *apps;
    struct list acked;  // acked envelopes that Postgres has to be told of
    struct list acking; // those that it is being told of
    int unknown_count;  // in both, of those of which only the id is known
    bool acks_asked;    // the statement that tells it is under way
    bool take_asked;    // kept events are being asked for
    bool take_soon;     // they are to be asked for again after the answer
    int64_t taken_ms;   // when kept events were last asked for
    void (*on_taken)(struct gateway *gateway, const struct kept *kept); // one was taken
    bool timer_runs;
    struct loop_timer *timer;
};

struct app *app_find(struct gateway *gateway, const char *id);
struct app *app_make(struct gateway *gateway, const char *id); // or finds it; NULL without memory
void app_free(struct app *app); // its last app_socket is gone; its envelopes are, too
bool app_socket_is_open(const struct app_socket *app_socket);
void app_socket_send(const struct app_socket *app_socket, const char *text, size_t length);
// The app_socket whose turn it is; another one than `last` when there is one. NULL: none is open.
struct app_socket *app_next_socket(struct app *app, const struct app_socket *last);
// How many kept events the app may take; 0: no app_socket.
int64_t app_room(const struct app *app);
// All that may be sent was acked: there may be more.
bool app_is_idle(const struct app *app);
