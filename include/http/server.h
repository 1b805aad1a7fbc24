// SPDX-License-Identifier: Apache-2.0
// HTTP on one loop: the front door (accepts, looks at the request line, hands over), libmicrohttpd
// behind it for calls, and plain handlers for what is not an API method. One server per loop; all
// on the loop's thread.
#pragma once

#include "base/loop.h"
#include "http/request.h"

struct server;

// A call of an API method. The handler owns the reply (see request.h).
typedef void server_call_fn(void *arg, struct request *request);

// A plain page (/healthz, /readyz, /metrics): fills `body` and answers the HTTP status; content
// type in ret_type.
typedef int server_page_fn(void *arg, struct buffer *body, const char **ret_type);

// A connection that asks to live long (its path begins with /rtm/, /link/ or /events): the
// descriptor (non-blocking, now owned by the callee) and the bytes already read from it, which
// begin with the request line and may be less or more than the whole head. `head` is valid only
// inside the call. Nothing has been answered yet, and no deadline runs any more. It makes no
// difference whether the request was the connection's first or came after calls (a proxy reuses its
// connections); in the latter case `head` is exactly the head, and what the peer sent behind it
// without waiting for the answer is lost.
typedef void server_takeover_fn(void *arg, int fd, const char *head, size_t length);

struct server_options {
    const char *listen; // "127.0.0.1:8080"
    int64_t header_timeout_ms;
    int64_t body_timeout_ms;
    int64_t idle_timeout_ms; // between requests, until the next request line is complete
    int64_t body_max_bytes;
    int64_t reply_max_bytes;
    int connections_max;
    const char *cors_origins; // whose pages may call: "a,b", "*" or ""
    server_call_fn *on_call;
    server_takeover_fn *on_takeover; // may be NULL
    void *arg;
};

NODISCARD int server_new(struct loop *loop, const struct server_options *options,
                         struct server **ret_server);
// The port it listens on (as chosen by the kernel when the address says 0); negative once it
// accepts no more.
int server_port(const struct server *server);

// Adds a page at `path` ("/healthz", nothing below /api/), for GET and HEAD.
NODISCARD int server_page_add(struct server *server, const char *path, server_page_fn *fn,
                              void *arg);

// A file that never changes while the program runs. Neither texts nor data are copied.
struct server_file {
    const char *type;
    const char *policy; // Content-Security-Policy; NULL for none
    const char *data;
    size_t length;
};

// Adds a file at `path`, for GET and HEAD. Browsers ask each time whether theirs still is the
// right one, and get 304 when it is.
NODISCARD int server_file_add(struct server *server, const char *path,
                              const struct server_file *file);

// Stops accepting; calls in work go on, also those that come over connections that are there, which
// close after the reply.
void server_quiesce(struct server *server);
// How many calls are in work.
int server_calls(const struct server *server);
// How many connections there are.
int server_connections(const struct server *server);
// Closes what is left. Only after loop_run() has returned. A handler that has not replied yet still
// owes its reply.
void server_free(struct server *server);
