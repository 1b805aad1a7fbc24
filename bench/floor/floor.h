// SPDX-License-Identifier: Apache-2.0
// tidings-floor: the least that the measured work costs, on one thread. Its only client is
// tidings-bench, which asks one thing at a time on a connection and reads what it is sent: sockets
// block, and what is not as expected ends the program.
#ifndef TIDINGS_FLOOR_H
#define TIDINGS_FLOOR_H

#include "../common/tool.h"
#include "../load/input.h"

#include <jansson.h>
#include <libpq-fe.h>

#define FLOOR_REQUEST_MAX 4096

// A connection, and the request that waits on it for a reply.
struct conn {
    int fd; // -1: it is gone
    bool waits;
    size_t len;
    char bytes[FLOOR_REQUEST_MAX + 1];
    const char *path, *token, *body; // in `bytes`
    json_t *json;                    // of the body
    int64_t ts;                      // that the post got
};

// Listens at a port of 127.0.0.1.
int server_listen(unsigned port);
void server_say_ready(void);

// Serves at a port of 127.0.0.1 until SIGTERM. `on_turn`, which may be NULL, is called after all
// that was ready.
void server_run(unsigned port, void (*on_request)(struct conn *), void (*on_turn)(void));

// Calls `on_ready` when the descriptor can be read.
void server_watch(int fd, void (*on_ready)(void));

void conn_write(struct conn *conn, const char *bytes, size_t len);

// Answers the request with JSON.
void conn_reply(struct conn *conn, const char *json, size_t len);

const char *conn_text(const struct conn *conn, const char *key);

// The set-up's file; then users are found by token, and channels of the group by id.
struct input *floor_input(const struct tool_args *args, const char *group);
void *floor_find(const char *token_or_id);

PGconn *floor_postgres(const struct tool_args *args, const char *sql);
void floor_expect(PGconn *pg, bool fine);

// Posts, and with --data marks and frames; see bench/README.md.
void floor_posts(const struct tool_args *args);
// One prepared select a request.
void floor_reads(const struct tool_args *args);
// A send loop of ready-made WebSocket frames to all that connect.
void floor_sockets(const struct tool_args *args);

#endif
