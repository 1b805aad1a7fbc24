// SPDX-License-Identifier: Apache-2.0
// Non-blocking TCP connections on one epoll, for a load program of one thread. What arrives goes
// through one buffer that all connections share; only what a parser leaves over is copied to its
// connection.
#ifndef TIDINGS_BENCH_NET_H
#define TIDINGS_BENCH_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_loop;
struct net_conn;

// Is given all unread bytes; returns how many it used. Sets conn->need to be called again only once
// so many are there.
typedef size_t (*net_data_fn)(struct net_conn *conn, const char *data, size_t len);

struct net_conn {
    struct net_loop *loop;
    int fd; // -1: closed by the peer or never opened
    bool waits_to_write;
    net_data_fn on_data;
    size_t need;
    char *rest; // received, not yet used
    size_t rest_len, rest_room;
    char *out; // not yet sent
    size_t out_len, out_pos, out_room;
};

// Never NULL; dies on failure.
struct net_loop *net_loop_new(void);
void net_loop_free(struct net_loop *loop);

// Handles what is ready, waiting until `until_ns` at most.
void net_loop_run(struct net_loop *loop, uint64_t until_ns);

// Events that data came with, since the loop was made: how well the peer gathers its writes.
uint64_t net_loop_reads(const struct net_loop *loop);

// Opens `conn` (zeroed by the caller, who keeps it until net_conn_close) to an IPv4 address; dies
// on failure.
void net_conn_open(struct net_conn *conn, struct net_loop *loop, const char *host, uint16_t port,
                   net_data_fn on_data);

// Sends all, now or when the peer takes it.
void net_conn_send(struct net_conn *conn, const char *bytes, size_t len);

// Connections that are opened from now on have small buffers and segments, as over a network: on
// loopback, the kernel takes megabytes for a peer that does not read.
void net_loop_narrow(struct net_loop *loop);

// Reads nothing any more.
void net_conn_stall(struct net_conn *conn);

// As net_conn_close, but resets it: the peer is told at once, and no port stays in use.
void net_conn_cut(struct net_conn *conn);

// Closes and frees what the connection holds; nothing where it is closed.
void net_conn_close(struct net_conn *conn);

#endif
