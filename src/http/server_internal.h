// SPDX-License-Identifier: Apache-2.0
// The inside of a server. Everything runs on its loop's thread.
//
//   door.c              accepts, peeks at the first head, then hands the descriptor to
//                       libmicrohttpd or to on_takeover
//   connection.c        follows each connection's state and ends those that are late
//   exchange.c          one request of a connection inside libmicrohttpd: head, body, call, reply
//   exchange_chunked.c  one whose body is chunked, past libmicrohttpd
//   mhd_quirks.c        what leans on libmicrohttpd's insides
//   linger.c            says a last word on a connection and reads on for a while, so that the peer
//                       gets to see it
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
    struct list link; // in server->connections[state]
    struct server *server;
    struct MHD_Connection *mhd; // NULL at the door and while lingering
    struct loop_watch *watch;   // the other way round
    void (*on_gone)(void *arg); // called by connection_free(); NULL: nobody
    void *gone_arg;
    int64_t deadline_ms;
    int64_t bytes;      // at the door: seen so far; REPLY: that had arrived when last looked at;
                        // lingering: still to throw away
    const char *memory; // libmicrohttpd's for this connection, from the first target on
    int fd;             // libmicrohttpd's once `mhd` is set
    enum http_connection_state state;
};

struct server {
    struct loop *loop;
    struct server_options options;
    struct MHD_Daemon *daemon;
    struct loop_watch *daemon_watch;
    struct loop_watch *listen_watch;
    struct loop_timer *tick;
    struct server_page *pages;
    struct list connections[CONNECTION_STATES]; // each in the order of its deadlines
    struct list calls;                          // exchanges whose handler was called
    struct list spares;                         // exchanges to use again
    struct list gzips;                          // exchanges whose replies are compressed in turn
    struct gzip *gzip_spare;                    // to use again, or NULL
    struct intake intake;                       // of bodies
    struct intake outgo;                        // of replies
    struct parser *parser;
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
    char head[SERVER_HEAD_MAX_BYTES]; // what the door is looking at
};

// Sees to it that libmicrohttpd runs at the end of this turn, or at once in another.
void server_run_soon(struct server *server);

// connection.c

// A connection on `fd` in the state FRESH. Owns `fd`. NULL (and closed) without memory.
struct http_connection *connection_new(struct server *server, int fd);
// Forgets the connection; closes its descriptor unless libmicrohttpd has it.
void connection_free(struct http_connection *connection);
// The same, but the descriptor is now the caller's.
int connection_take_fd(struct http_connection *connection);
void connection_move(struct http_connection *connection, enum http_connection_state state);
// Hands it to libmicrohttpd, which may refuse: the connection is gone then.
void connection_add_to_daemon(struct http_connection *connection);
// As mhd_descriptor_take(): the connection ends.
NODISCARD int connection_detach(struct http_connection *connection, int *ret_fd);
// libmicrohttpd has lost the descriptor, and is to find that out soon.
void connection_leaves_daemon(struct http_connection *connection);
void connections_expire(struct server *server);
// Ends those whose peer has said with its request that no other will come. To be called at each
// tick.
void connections_end_half_closed(struct server *server);
void connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
                       enum MHD_ConnectionNotificationCode code);
struct http_connection *connection_of(struct MHD_Connection *mhd);

// door.c

// Opens the door; the error is logged.
NODISCARD int door_open(struct server *server);
void door_close(struct server *server); // idempotent
// Lets in who has come already.
void door_accept_waiting(struct server *server);
// Tries again after a pause.
void door_resume(struct server *server);
// Whether the path of a request line's target belongs to on_takeover.
bool door_is_takeover(const char *target, size_t length);

// listen.c

// A listening socket on "host:port". The error is logged.
NODISCARD int listen_on(const char *address, int *ret_fd);

// linger.c

// Writes `text` to `fd`, then reads and throws away at most `budget` bytes in at most 2 s, and
// closes. Owns `fd`.
void linger_start(struct server *server, int fd, int64_t budget, const char *text, size_t length);

// exchange.c

// Answers a head that libmicrohttpd must not see, at the door or in exchange_line(), and closes,
// politely. At the door the connection is gone afterwards.
void exchange_refuse_head(struct http_connection *connection, int status, const char *reason);

// libmicrohttpd's callbacks; `arg` is the server.

void *exchange_line(void *arg, const char *target, struct MHD_Connection *mhd);
enum MHD_Result exchange_step(void *arg, struct MHD_Connection *mhd, const char *path,
                              const char *verb, const char *version, const char *data, size_t *size,
                              void **context);
void exchange_end(void *arg, struct MHD_Connection *mhd, void **context,
                  enum MHD_RequestTerminationCode code);
// Resumes what still waits for its handler, so that the daemon may stop.
void exchanges_abandon(struct server *server);
// Frees what is kept to be used again.
void exchanges_free_spares(struct server *server);
// The server goes: calls whose handler has not replied yet end with that reply.
void exchanges_forget(struct server *server);
