// SPDX-License-Identifier: Apache-2.0
// The inside of a server. Everything runs on its loop's thread.
//
//   acceptor.c         accepts, peeks at the first head, then hands the descriptor to libmicrohttpd
//                      or to on_takeover
//   http_connection.c  follows each connection's state and ends those that are late
//   mhd_handler.c      libmicrohttpd's callbacks
//   exchange_chunked.c the same work for a request with a chunked body, past libmicrohttpd
//   exchange_steps.c   what each request goes through: head, body, call, reply
//   exchange_….c       parts of that, and the exchange itself
//   daemon.c           when libmicrohttpd runs
//   mhd_quirks.c       what leans on libmicrohttpd's insides
//   lingering_close.c  sends a last reply and reads on for a while, so that the peer receives it
//
// Each file includes only files below it; this header has what all of them share.
#pragma once

#include "base/digest.h"
#include "base/list.h"
#include "base/loop.h"
#include "http/server.h"
#include "intake.h"
#include "mhd_quirks.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SERVER_TICK_MS = 100,
    SERVER_LINGER_MS = 2000,
    SERVER_SHORT_MS = 10000, // between words in the log of too few descriptors
    SERVER_HEAD_MAX_BYTES = MHD_MEMORY_BYTES,
    ETAG_SIZE = DIGEST_HEX_SIZE + 2, // in quotes
};

enum http_connection_state {
    CONNECTION_FRESH,   // since accept, until the first request's head is complete
    CONNECTION_HEADERS, // the head of a later request is coming
    CONNECTION_BODY,
    CONNECTION_WORK, // waits for the handler: the only state without deadline besides CLOSING
    CONNECTION_REPLY,
    CONNECTION_IDLE, // between requests
    CONNECTION_LINGER,
    CONNECTION_CLOSING,
    CONNECTION_STATES
};

struct server_page {
    struct server_page *next;
    char *path;
    server_page_fn *fn; // NULL: it is `file`
    void *arg;
    struct server_file file;
    char etag[ETAG_SIZE];
};

struct http_connection {
    uint32_t tag;
    struct list link; // in server->connections[state]
    struct server *server;
    struct MHD_Connection *mhd; // NULL at the acceptor and while lingering
    struct loop_io *watch;      // the other way round
    void (*on_gone)(void *arg); // called by connection_free(); NULL: nobody
    void *gone_arg;
    int64_t deadline_ms;
    int64_t bytes; // at the acceptor: seen so far; REPLY: that had arrived when last looked at;
                   // lingering: still to throw away
    const char *memory; // libmicrohttpd's for this connection, from the first target on
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
    struct list connections[CONNECTION_STATES]; // each in the order of its deadlines
    struct list calls;                          // exchanges whose handler was called
    struct list spares;                         // exchanges to use again
    struct gzip *gzip;                          // NULL until it is needed
    struct gzip *gzip_long;                     // the same; the compressor's
    struct intake intake;                       // of bodies
    struct intake outgo;                        // of replies
    struct job_thread *parser;                  // reads large bodies
    struct job_thread *compressor;              // of long replies
    int spares_count;
    struct http_connection *adding; // what is being handed to libmicrohttpd
    int64_t timeout_ms[CONNECTION_STATES];
    int64_t looked_ms;     // when the connections that were idle then were last looked at
    int64_t short_told_ms; // when the log was last told of too few descriptors; 0: never
    uint64_t id_base;      // request ids: a random start and a count
    uint64_t id_count;
    int listen_fd;
    int spare_fd; // given up to accept and refuse when there are no descriptors
    int connections_count;
    int calls_count;
    bool quiescing;
    bool run_due; // libmicrohttpd has something to do at the end of the turn
    bool accept_paused;
    char head[SERVER_HEAD_MAX_BYTES]; // what the acceptor is looking at
};
