// SPDX-License-Identifier: Apache-2.0
// The HTTP side of the floors: libmicrohttpd in an epoll loop of one thread. A request is answered
// at once, or waits until its reply is there.
#ifndef TIDINGS_FLOOR_SERVER_H
#define TIDINGS_FLOOR_SERVER_H

#include "../common/tool.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#define SERVER_BODY_MAX 1024
#define SERVER_REPLY_MAX (SERVER_BODY_MAX + 512)

// First in the owner's own struct of a request.
struct server_request {
    struct MHD_Connection *connection;
    struct server_request *next; // in a queue, or of what is spare
    size_t body_len;
    size_t reply_len; // > 0: the reply is there
    char *long_reply; // from malloc, in place of `reply`; NULL: none
    char body[SERVER_BODY_MAX];
    char reply[SERVER_REPLY_MAX];
};

struct server_queue {
    struct server_request *first;
    struct server_request **last;
    size_t count;
};

void server_queue_init(struct server_queue *queue);
void server_queue_push(struct server_queue *queue, struct server_request *request);
struct server_request *server_queue_pop(struct server_queue *queue);

// Something to be called when a descriptor is ready.
struct server_watch {
    int fd;
    bool writes; // also when it can be written
    void (*on_ready)(void *owner);
    void *owner;
};

struct server_plan {
    size_t request_bytes; // of the owner's struct
    // Its body is whole: fills the reply, or keeps the request for server_answer().
    void (*on_request)(void *owner, struct server_request *request, const char *url);
    // The request is over: what the owner added is let go. NULL: nothing was.
    void (*on_done)(void *owner, struct server_request *request);
    void *owner;
};

struct server;

// Listens at 127.0.0.1; dies on failure. Never NULL.
struct server *server_new(unsigned port, const struct server_plan *plan);

// All requests that wait have been answered.
void server_free(struct server *server);

// Borrows `watch` as long as the server lives.
void server_watch_add(struct server *server, struct server_watch *watch);
void server_watch_writes(struct server *server, struct server_watch *watch, bool writes);

// Waits for something to do, and does it.
void server_run_once(struct server *server);

// The reply of a request that was kept is there; with none, its connection is given up.
void server_answer(struct server_request *request);

// The token of "Authorization: Bearer"; dies where there is none.
const char *server_request_token(const struct server_request *request);

#endif
