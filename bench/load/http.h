// SPDX-License-Identifier: Apache-2.0
// The least HTTP/1.1 client that a load program needs: keep-alive, one request at a time on a
// connection, replies with a Content-Length. What it cannot read ends the program.
#ifndef TIDINGS_BENCH_HTTP_H
#define TIDINGS_BENCH_HTTP_H

#include "net.h"

struct http_client;

// `body` is borrowed until the call returns; the client is idle again and may send the next request
// from inside.
typedef void (*http_reply_fn)(struct http_client *client, const char *body, size_t len);

struct http_client {
    struct net_conn conn; // first: net gives the connection back, http the client
    bool busy;
    uint64_t due_ns; // when the request under way was due: what its latency counts from
    size_t tag;      // the caller's: which request this is
    bool may_refuse; // 429 and 503 are replies like others
    unsigned status;
    unsigned retry_after_s; // 0: the reply said nothing of it
    void *owner;            // the caller's
    http_reply_fn on_reply;
    uint64_t rests_until_ns; // the load's: a refused client that waits out its Retry-After
    struct http_client *next_idle;
};

struct http_pool {
    struct http_client *clients;
    struct http_client *idle;
    unsigned count;
    struct net_loop *loop;
    char host[16];
    uint16_t port;
    bool may_reopen; // a connection that the server closed while it was idle
};

// Opens `count` connections to http://host:port; they call `on_reply` with client->owner = owner.
// Idle ones are taken with http_pool_take and come back by http_pool_give, from inside on_reply.
void http_pool_init(struct http_pool *pool, struct net_loop *loop, const char *url, unsigned count,
                    http_reply_fn on_reply, void *owner);
void http_pool_done(struct http_pool *pool);

// NULL: all are busy.
struct http_client *http_pool_take(struct http_pool *pool);
void http_pool_give(struct http_pool *pool, struct http_client *client);

// Sends ready-made bytes as one request.
void http_client_send(struct http_client *client, const char *request, size_t len, uint64_t due_ns,
                      size_t tag);

// Writes a POST of JSON to /api/<method> into `ret_request`; its length is returned. Dies where it
// does not fit.
size_t http_request_write(char *ret_request, size_t room, const char *method, const char *token,
                          const char *host, const char *json);

// The IPv4 host and port of http://host:port/… or ws://host:port/…; returns the path's place in
// url.
const char *http_url_parse(const char *url, char ret_host[16], uint16_t *ret_port);

// Whether the reply says "ok":true.
bool http_reply_is_ok(const char *body, size_t len);

// Dies with the reply where it does not say so.
void http_reply_check(const char *body, size_t len);

// Copies the string value of the first "key":"value" into ret_value; dies where it is not there or
// too long.
void http_reply_text(const char *body, size_t len, const char *key, char *ret_value, size_t room);

#endif
