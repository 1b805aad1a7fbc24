// SPDX-License-Identifier: Apache-2.0
// The part of a loop that owns long-lived connections: sockets, event streams (SSE) and app sockets
// (Socket Mode). Takes them over from the acceptor, sends each connection the events of its
// channels once and in order, fills gaps from Postgres, and handles what clients send on sockets.
// One gateway per loop; everything runs on the loop's thread.
//
// Close codes of a socket: 1001 the instance stops, or an app socket reached its age limit; 1002,
// 1003, 1007, 1009 the client sent something invalid; 1008 the client is slow, silent, sent too
// many frames or used an invalid ticket (after an error frame), its app has too many sockets, or
// memory ran out; 1012 events were lost and the client does not know the frame `gap` (it should
// reconnect without a position and read the history), or a backlog could not be read (it should
// reconnect); 4001 its token was revoked or has expired, or its user was deactivated.
//
// Topics (Redis sharded pub/sub): channel-events:{C}, user-events:{U}, workspace-events:{T}. Their
// messages are events in wire form (events/event.h), or frames that are not stored
// (chat/unstored_frame.h).
// presence-events:{U} carries "active" or "away"; session-events:{all} carries ids of tokens, users
// and apps that changed. A channel's topic is subscribed from the moment its first member connects
// here until `channel_linger_ms` after the last one left.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "cache/cache.h"
#include "events/event_log.h"
#include "gateway/gateway_settings.h"
#include "http/server.h"
#include "store/store.h"

struct gateway;
struct http_head;
struct marker;

struct gateway_options {
    struct gateway_settings settings;
    struct marker *marker;    // marks for sockets that show a channel
    const struct log *log;    // carries the events of other instances; NULL: never behind
    const char *cors_origins; // origins whose pages may read event streams: "a,b", "*" or ""
    int64_t active_s;         // active this long after a message on a socket; 0: not recorded
    // Called with the id of a token, user or app that another instance has changed; NULL: messages
    // may have been missed.
    void (*on_session)(void *arg, const char *id);
    server_call_fn *on_call; // runs a socket's post or mark like any other call; the actor is set
    void *arg;
};

NODISCARD int gateway_new(struct loop *loop, struct store *store, struct cache *cache,
                          const struct gateway_options *options, struct gateway **ret_gateway);
// Takes a connection from the acceptor (see server_takeover_fn).
void gateway_takeover(struct gateway *gateway, int fd, const struct http_head *head);
// Delivers events that this instance has just committed, without waiting for Redis; the
// same events arriving from Redis later are dropped. References the events that must wait.
void gateway_offer(struct gateway *gateway, struct event *const *events, size_t count);
// A token, user or app has changed: closes connections whose token is no longer valid.
void gateway_session_changed(struct gateway *gateway, const char *id);

// What a user missed since a position, for events.sync. Texts are valid only inside the callback.
struct gateway_missed {
    const char *events; // frames: elements of a JSON array, without brackets
    size_t events_length;
    const char *gaps; // ids of channels with events that could not be read, in the same form
    size_t gaps_length;
    const char *users; // who has changed: a JSON array, or null
    size_t users_length;
    const char *position; // where to continue
    bool has_more;
    bool is_too_old; // nothing could be read: anything may have happened
};

// r: 0, or -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_MEMORY (then `missed` is NULL).
typedef void gateway_sync_fn(void *arg, int r, const struct gateway_missed *missed);

// Reads at most `limit` events for the actor after the position `since`, then calls `fn` on a later
// turn, even if the gateway is gone by then. -ERROR_INVALID_POSITION: not a position, or another
// user's; -ERROR_MEMORY. After an error `fn` is not called.
NODISCARD int gateway_sync(struct gateway *gateway, const struct actor *actor, const char *since,
                           int64_t limit, gateway_sync_fn *fn, void *arg);

enum { GATEWAY_POSITION_SIZE = 736 };
// Parses the position in `text` and prints it as the user's own to GATEWAY_POSITION_SIZE bytes:
// digits, letters and dots. -ERROR_INVALID_POSITION: not a position, or another user's.
NODISCARD int gateway_position_take(const char *user_id, const char *text, char *ret_text);
enum { GATEWAY_BEYOND_MAX = 8 };

// What a position covers, as the SQL type `covered`.
struct gateway_covered {
    int64_t xid;
    int64_t later_xid;
    char channel_id[EVENT_ID_SIZE]; // "": not within a backlog
    bool is_after_events;           // of that channel
    int64_t seq;
    int beyond_count;
    struct {
        char channel_id[EVENT_ID_SIZE];
        int64_t seq;
    } beyond[GATEWAY_BEYOND_MAX];
};

// Parses the user's position in `text`. -ERROR_INVALID_POSITION: not a position, another user's, or
// too old for events to be read from there.
NODISCARD int gateway_position_covers(const struct gateway *gateway, const char *user_id,
                                      const char *text, struct gateway_covered *ret_covered);
// Prints the position of `user_id` at which all transactions below `xid`, of that era, had been
// sent by `seconds` (Postgres' clock), to GATEWAY_POSITION_SIZE bytes.
void gateway_position_print(const char *user_id, int64_t xid, int64_t era, int64_t seconds,
                            char *ret_text);
// Begins an orderly stop: refuses new connections, sends goodbye on all others, and closes them
// with 1001 after `goodbye_ms`.
void gateway_drain(struct gateway *gateway);
// The number of connections in any state.
int gateway_sockets(const struct gateway *gateway);
// Closes the remaining connections; takes NULL. Call it after loop_run() has returned, before or
// after freeing the store and the cache.
void gateway_free(struct gateway *gateway);
