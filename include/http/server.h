// SPDX-License-Identifier: Apache-2.0
// The HTTP server of a loop. It reads the requests of its connections: calls go to on_call,
// long-lived connections to on_takeover, pages and files to libmicrohttpd. One server per loop;
// everything runs on the loop's thread.
#pragma once

#include "base/loop.h"
#include "call/request.h"
#include "http/server_settings.h"

struct http_head;
struct server;

// Handles a call of an API method. The handler owes the reply (see request.h).
typedef void server_call_fn(void *arg, struct request *request);

// Asks whether to accept a body of more than SERVER_BODY_SMALL_BYTES or of unknown length. Called
// if the head carries a token, before the body is read. The callee answers by request_admit(), or
// by a reply to refuse, inside the call or later.
typedef void server_admit_fn(void *arg, struct request *request);

enum { SERVER_BODY_SMALL_BYTES = 4096 };

// The method of a POST to an incoming webhook. Its token is the path after "/services/". No call
// below /api/ has this name.
#define SERVER_WEBHOOK "/services"
// Likewise those of files: uploads, and downloads by token and by a secret path.
#define SERVER_UPLOAD "/upload"
#define SERVER_FILE "/files-pri"
#define SERVER_FILE_SIGNED "/files-signed"

// A plain page (/healthz, /readyz, /metrics): fills `body`, sets the content type, and returns the
// HTTP status.
typedef int server_page_fn(void *arg, const char *path, struct buffer *body, const char **ret_type);

// Hands over a long-lived connection (see http/path.h): its descriptor, non-blocking and owned by
// the callee, and the head that was read from it, valid only inside the call. What the peer sent
// after the head has not been read. No deadline is running. The request may be the connection's
// first, or follow calls (proxies reuse connections).
typedef void server_takeover_fn(void *arg, int fd, const struct http_head *head);

struct server_options {
    struct server_settings settings;
    server_call_fn *on_call;
    server_admit_fn *on_admit;       // NULL: all are admitted
    server_takeover_fn *on_takeover; // may be NULL
    void *arg;
};

NODISCARD int server_new(struct loop *loop, const struct server_options *options,
                         struct server **ret_server);
// The port it listens on (chosen by the kernel if `listen` has port 0); negative once it no longer
// accepts connections.
int server_port(const struct server *server);

// Adds a page at `path` ("/healthz"; not below /api/), or at all paths below it if `path` ends with
// "/*", for GET and HEAD. Nothing keeps a copy of it, unless `cache` is a Cache-Control.
NODISCARD int server_page_add(struct server *server, const char *path, server_page_fn *fn,
                              void *arg);
NODISCARD int server_page_add_cached(struct server *server, const char *path, const char *cache,
                                     server_page_fn *fn, void *arg);

// A file that never changes while the program runs. Neither strings nor data are copied.
struct server_file {
    const char *type;
    const char *policy; // Content-Security-Policy; NULL: none
    const char *data;
    size_t length;
};

// Adds a file for GET and HEAD at `path`, or at all paths below it if `path` ends with "/*".
// Browsers revalidate their copy each time, and receive 304 if it is current.
NODISCARD int server_file_add(struct server *server, const char *path,
                              const struct server_file *file);

// Stops accepting connections. Calls continue, including new ones on existing connections, which
// are closed after their next reply.
void server_quiesce(struct server *server);
// The number of calls in progress.
int server_calls(const struct server *server);
// The number of connections.
int server_connections(const struct server *server);
// Closes the remaining connections. Only after loop_run() has returned. A handler that has not
// replied yet still owes its reply.
void server_free(struct server *server);
