// SPDX-License-Identifier: Apache-2.0
// Apps in Socket Mode with sockets on this gateway, and the envelopes in flight to them.
#pragma once

#include "../websocket/receive.h"

#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct app;
struct connection;
struct gateway;
struct app_event;
struct loop_timer;

enum { UUID_SIZE = 37 };

enum app_socket_state {
    APP_SOCKET_NEW, // hello not sent yet
    APP_SOCKET_READY,
    APP_SOCKET_WARNED,   // `disconnect` with reason `warning` sent: it ends soon
    APP_SOCKET_REFRESHED // `disconnect` with reason `refresh_requested` sent
};

// A connection of an app.
struct app_socket {
    uint32_t tag;
    struct connection *connection;
    struct socket socket;
    struct app *app; // while it is open
    struct list app_link;
    enum app_socket_state state;
    int64_t ends_ms; // when the app is asked to reconnect
};

// An app with sockets on this gateway.
struct app {
    UT_hash_handle hh;
    struct gateway *gateway;
    char id[EVENT_ID_SIZE];
    struct list sockets;   // the first receives the next envelope
    struct list envelopes; // sent by this gateway, or about to be, and not acked
    int envelope_count;
    char last_channel[EVENT_ID_SIZE]; // of the last event offered
    int64_t last_seq;                 // of the same event
    int64_t counted_ms;               // when the number of sockets was last written to Redis
};

enum envelope_state {
    ENVELOPE_ASKED, // Redis decides whether this gateway makes the first attempt
    ENVELOPE_SENT,  // not acked yet
    ENVELOPE_OVER,  // the time to ack is over; a late ack still counts
};

struct envelope {
    struct list link; // in its app's envelopes, or among those acked
    char app_id[EVENT_ID_SIZE];
    char id[UUID_SIZE];
    char channel_id[EVENT_ID_SIZE]; // "": acked, and only the id is known
    int64_t seq;                    // negative: an app_mention (chat/app_mention.h)
    int64_t happened_us;
    int64_t due_ms; // when its state ends
    int64_t attempt;
    enum envelope_state state;
    bool returns;                  // see app_backlog_return()
    const struct app_socket *sent; // the socket it was sent on; NULL: closed since, or not sent
    size_t length;
    char frame[];
};

struct envelopes {
    struct app *apps;
    struct list acked;  // acked; to be recorded in Postgres
    struct list acking; // being recorded
    int unknown_count;  // in both lists: envelopes of which only the id is known
    bool acks_asked;    // the statement that records acks is in progress
    bool take_asked;    // kept events are being read
    bool take_soon;     // read them again after that
    int64_t taken_ms;   // when kept events were last requested
    void (*on_taken)(struct gateway *gateway,
                     const struct app_event *event); // for each event taken
    bool timer_runs;
    struct loop_timer *timer;
};

struct app *app_find(struct gateway *gateway, const char *id);
struct app *app_make(struct gateway *gateway, const char *id); // or finds it; NULL: out of memory
void app_free(struct app *app); // after its last socket; frees its envelopes, too
bool app_socket_is_open(const struct app_socket *app_socket); // may be sent envelopes
void app_socket_send(const struct app_socket *app_socket, const char *text, size_t length);
// The next open socket in turn; not `last` if there is another. NULL: none is open.
struct app_socket *app_next_socket(struct app *app, const struct app_socket *last);
// How many kept events the app may take; 0: it has no open socket, or too many unacked envelopes.
int64_t app_room(const struct app *app);
// Has an open socket, and no unacked envelopes: more events may be kept for it.
bool app_is_idle(const struct app *app);
