// SPDX-License-Identifier: Apache-2.0
// The internals of a server. Everything runs on its loop's thread.
//
//   acceptor.c         accepts, peeks at the first head, then passes the descriptor on, to
//                      libmicrohttpd or on_takeover
//   http_connection.c  tracks each connection's state and enforces its deadline
//   mhd_handler.c      libmicrohttpd's callbacks
//   exchange_chunked.c the same for requests with chunked bodies, bypassing libmicrohttpd
//   exchange_steps.c   the steps of every request: head, body, call, reply
//   exchange_….c       parts of these steps, and the exchange itself
//   daemon.c           decides when libmicrohttpd runs
//   mhd_quirks.c       code that depends on libmicrohttpd's internals
//   lingering_close.c  sends a last reply and keeps reading for a while, so that the peer gets it
//
// Their includes form no circles. This header holds what all of them share.
#pragma once

#include "base/digest.h"
#include "base/list.h"
#include "base/loop.h"
#include "call/intake.h"
#include "http/server.h"
#include "mhd_quirks.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SERVER_TICK_MS = 100,
    SERVER_LINGER_MS = 2000,
    SERVER_SHORT_MS = 10000, // between log lines about exhausted descriptors
    SERVER_HEAD_MAX_BYTES = MHD_MEMORY_BYTES,
    ETAG_SIZE = DIGEST_HEX_SIZE + 2, // with quotes
};

enum http_connection_state {
    CONNECTION_FRESH,   // from accept() until the first request's head is complete
    CONNECTION_HEADERS, // receiving the head of a later request
    CONNECTION_BODY,
    CONNECTION_WORK, // waiting for the handler; besides CLOSING, the only state without a deadline
    CONNECTION_REPLY,
    CONNECTION_IDLE, // between requests
    CONNECTION_LINGER,
    CONNECTION_CLOSING,
    CONNECTION_STATES
};

struct server_page {
    struct server_page *next;
    char *path;
    server_page_fn *fn; // NULL: serves `file`
    void *arg;
    struct server_file file;
    char etag[ETAG_SIZE];
};

struct http_connection {
    uint32_t tag;
    struct list link; // in server->connections[state]
    struct server *server;
    struct MHD_Connection *mhd; // NULL at the acceptor and in lingering close
    struct loop_io *watch;      // NULL while libmicrohttpd has it
    void (*on_free)(void *arg); // called by connection_free(); may be NULL
    void *on_free_arg;
    int64_t deadline_ms;
    int64_t bytes;      // acceptor: bytes seen so far; REPLY: bytes acknowledged at the last check;
                        // lingering close: bytes still to discard
    const char *memory; // libmicrohttpd's for this connection; known from the first target on
    int fd;             // libmicrohttpd's once `mhd` is set
    enum http_connection_state state;
};

struct server {
    uint32_t tag;
    struct loop *loop;
    struct server_options options;
    struct MHD_Daemon *daemon;
    struct loop_io *daemon_watch;
    struct loop_io *listen_watch;
    struct loop_timer *tick;
    struct server_page *pages;
    struct list connections[CONNECTION_STATES]; // each sorted by deadline
    struct list calls;                          // exchanges whose handler was called
    struct list spares;                         // exchanges for reuse
    struct gzip *gzip;                          // created on first use
    struct gzip *gzip_long;                     // the same, for the thread of long replies
    struct intake intake;                       // accounts for bodies
    struct intake outgo;                        // accounts for replies
    struct job_thread *parser;                  // parses large bodies
    struct job_thread *long_replies;            // compresses them, and frees them
    int spares_count;
    struct http_connection *adding; // the connection being passed to libmicrohttpd
    int64_t timeout_ms[CONNECTION_STATES];
    int64_t looked_ms;       // when idle connections were last checked
    int64_t short_logged_ms; // when exhausted descriptors were last logged; 0: never
    uint64_t id_base;        // for request ids: a random start and a counter
    uint64_t id_count;
    int listen_fd;
    int spare_fd; // closed to accept and refuse a connection when descriptors run out
    int connections_count;
    int calls_count;
    bool quiescing;
    bool run_due; // libmicrohttpd must run at the end of the turn
    bool accept_paused;
    char head[SERVER_HEAD_MAX_BYTES]; // the head the acceptor is checking
};
