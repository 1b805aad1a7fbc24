// SPDX-License-Identifier: Apache-2.0
// HTTP on one loop: a front acceptor, which accepts connections, looks at the request line and
// hands over; behind it libmicrohttpd for calls of the API, and plain handlers for pages and files.
// One server per loop; all on the loop's thread.
#pragma once

#include "base/loop.h"
#include "http/request.h"

struct http_head;
struct server;

// A call of an API method. The handler owns the reply (see request.h).
typedef void server_call_fn(void *arg, struct request *request);

// Whether a body of more than SERVER_BODY_SMALL_BYTES, or of unknown length, is let in: asked when
// the head has a token, before the body is read. The callee answers by request_admit() or by a
// reply, inside the call or later.
typedef void server_admit_fn(void *arg, struct request *request);

enum { SERVER_BODY_SMALL_BYTES = 4096 };

// A plain page (/healthz, /readyz, /metrics): fills `body`, sets the content type, and returns the
// HTTP status.
typedef int server_page_fn(void *arg, struct buffer *body, const char **ret_type);

// Hands over a long-lived connection (see http/path.h): the descriptor, non-blocking and from now
// on the callee's, and the head that was read from it, which is valid only inside the call. Nothing
// has been answered yet, and no deadline runs any more. The request may be the connection's first,
// or come after calls (a proxy reuses its connections). In the latter case anything the peer sent
// after the head without waiting for the answer is lost.
typedef void server_takeover_fn(void *arg, int fd, const struct http_head *head);

struct server_options {
    const char *listen; // "127.0.0.1:8080"
    int64_t header_timeout_ms;
    int64_t body_timeout_ms;
    int64_t idle_timeout_ms; // between requests, until the next request line is complete
    int64_t body_max_bytes;
    int64_t stranger_body_max_bytes; // of a body whose head has no token
    int64_t bodies_bytes;            // of all requests under way
    int64_t user_bodies_bytes;       // of those of one user; one body may be more
    int64_t strangers_bodies_bytes;  // of those whose user is not known yet; the same
    int64_t replies_bytes;           // of all large replies that are not sent yet
    int64_t user_replies_bytes;      // of those of one user; one reply may be more
    int64_t json_values_max;         // of a body, or of an argument
    int64_t reply_max_bytes;
    int64_t gzip_min_bytes; // replies of calls that are longer are compressed, where taken; 0: none
    int connections_max;
    const char *cors_origins; // origins whose pages may call: "a,b", "*" or ""
    server_call_fn *on_call;
    server_admit_fn *on_admit;       // may be NULL: all are
    server_takeover_fn *on_takeover; // may be NULL
    void *arg;
};

NODISCARD int server_new(struct loop *loop, const struct server_options *options,
                         struct server **ret_server);
// The port it listens on (chosen by the kernel if `listen` says 0); negative once it accepts no new
// connections.
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

// Adds a file at `path`, or with "/*" at its end below it, for GET and HEAD. Browsers revalidate
// their copy each time, and get 304 if it is current.
NODISCARD int server_file_add(struct server *server, const char *path,
                              const struct server_file *file);

// Stops accepting connections. Calls go on, also new ones over existing connections, each of which
// is closed after its next reply.
void server_quiesce(struct server *server);
// How many calls are in work.
int server_calls(const struct server *server);
// How many connections there are.
int server_connections(const struct server *server);
// Closes the remaining connections. Only after loop_run() has returned. A handler that has not
// replied yet still owes its reply.
void server_free(struct server *server);
