// SPDX-License-Identifier: Apache-2.0
// The internals of a server. Everything runs on its loop's thread.
//
//   acceptor.c         accepts connections
//   http_reader.c      reads requests from them, and passes on those for pages and on_takeover
//   page_daemon.c          serves pages, by libmicrohttpd
//   exchange_steps.c   the steps of a request: route, body, call
//   exchange_….c       parts of these steps, the reply, and the exchange itself
//   head.c, framing.c  parse a head, and find the end of a body
//   http_connection.c  tracks each connection's state and enforces its deadline
//   lingering_close.c  keeps reading for a while after a last reply, so that the peer gets it
//
// Each includes only headers of those below it. This header holds what all of them share.
#pragma once

#include "base/digest.h"
#include "base/list.h"
#include "base/loop.h"
#include "call/intake.h"
#include "http/server.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
    SERVER_TICK_MS = 100,
    SERVER_LINGER_MS = 2000,
    SERVER_SHORT_MS = 10000, // between log lines about exhausted descriptors
    SERVER_HEAD_MAX_BYTES = 16384,
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
    CONNECTION_CLOSING, // shut down; libmicrohttpd will notice
    CONNECTION_STATES
};

struct exchange;
struct MHD_Daemon;

struct server_page {
    struct server_page *next;
    char *path;
    server_page_fn *fn; // NULL: serves `file`
    void *arg;
    const char *cache; // Cache-Control
    struct server_file file;
    char etag[ETAG_SIZE];
};

struct http_connection {
    uint32_t tag;
    struct list link; // in server->connections[state]
    struct server *server;
    struct exchange *exchange; // NULL unless the head of a request is complete
    struct loop_io *watch;     // NULL before the first wait, and while libmicrohttpd has it
    int64_t deadline_ms;
    int64_t bytes; // bytes of an incomplete head seen so far; REPLY: bytes acknowledged at the last
                   // check; LINGER: bytes still to discard
    int fd;
    int page_fd; // libmicrohttpd's duplicate of `fd` while it serves a page; otherwise negative
    enum http_connection_state state;
};

struct server {
    uint32_t tag;
    struct loop *loop;
    struct server_options options;
    struct MHD_Daemon *daemon; // see page_daemon.c
    struct loop_io *daemon_watch;
    struct http_connection *adding; // being passed to libmicrohttpd
    bool daemon_due;                // libmicrohttpd must run at the end of the turn
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
    struct transfer_thread *transfers;          // moves files
    struct job_thread *long_replies;            // compresses them, and frees them
    int spares_count;
    int64_t timeout_ms[CONNECTION_STATES];
    int64_t short_logged_ms; // when exhausted descriptors were last logged; 0: never
    uint64_t id_base;        // for request ids: a random start and a counter
    uint64_t id_count;
    time_t date_s; // when `date`, a line of replies, was printed
    char date[64];
    int listen_fd;
    int spare_fd; // closed to accept and refuse a connection when descriptors run out
    int connections_count;
    int calls_count;
    bool quiescing;
    bool accept_paused;
    char input[SERVER_HEAD_MAX_BYTES]; // what the reader is looking at
};
