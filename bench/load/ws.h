// SPDX-License-Identifier: Apache-2.0
// The least WebSocket client that a load program needs: it reads whole text frames, answers pings
// and sends nothing else.
#ifndef TIDINGS_BENCH_WS_H
#define TIDINGS_BENCH_WS_H

#include "net.h"

#define WS_ID_ROOM 256

struct ws_socket;

// `text` is borrowed until the call returns.
typedef void (*ws_frame_fn)(struct ws_socket *socket, const char *text, size_t len);

struct ws_socket {
    struct net_conn conn; // first
    bool is_open;         // the handshake is done
    bool is_closed;       // a close frame came
    size_t user;          // index of its user
    size_t member;        // index of the user in its channel
    void *owner;          // the caller's
    ws_frame_fn on_frame;
    char *last_id;   // WS_ID_ROOM bytes of the caller's: the id of an event stream's last event;
                     // NULL: not kept
    bool is_refused; // an event stream was answered 503
};

// Opens a zeroed socket whose user, member, owner and on_frame are set; ws://host:port/path.
void ws_socket_open(struct ws_socket *socket, struct net_loop *loop, const char *url);

// Opens it as an event stream (GET /events), whose events' data are its frames.
// http://host:port/path.
void ws_socket_open_events(struct ws_socket *socket, struct net_loop *loop, const char *url);

// The same with a token, from socket->last_id on where that is not empty. http://host:port.
void ws_socket_resume_events(struct ws_socket *socket, struct net_loop *loop, const char *url,
                             const char *token);

// Opens it as a stream of frames without a handshake (the floor's).
void ws_socket_open_raw(struct ws_socket *socket, struct net_loop *loop, const char *url);

#endif
