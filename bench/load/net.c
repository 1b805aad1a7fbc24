// SPDX-License-Identifier: Apache-2.0
#include "net.h"

#include "../common/tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOP_BUFFER_BYTES (256u * 1024)
#define LOOP_EVENTS 512
#define NARROW_RECEIVE_BYTES 16384
#define NARROW_SEGMENT_BYTES 1400

struct net_loop {
    int epoll;
    uint64_t reads;
    bool is_narrow;
    char buffer[LOOP_BUFFER_BYTES];
};

struct net_loop *net_loop_new(void)
{
    struct net_loop *loop = tool_alloc(1, sizeof(*loop));

    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0)
        tool_die("epoll_create1: %s", strerror(errno));
    // The kernel's default slack of 50 us would be part of every latency.
    prctl(PR_SET_TIMERSLACK, 1000ul);
    return loop;
}

void net_loop_free(struct net_loop *loop)
{
    close(loop->epoll);
    free(loop);
}

uint64_t net_loop_reads(const struct net_loop *loop)
{
    return loop->reads;
}

void net_loop_narrow(struct net_loop *loop)
{
    loop->is_narrow = true;
}

static void conn_narrow(const struct net_conn *conn)
{
    int receive = NARROW_RECEIVE_BYTES, segment = NARROW_SEGMENT_BYTES;

    if (setsockopt(conn->fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive)) < 0 ||
        setsockopt(conn->fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)) < 0)
        tool_die("setsockopt: %s", strerror(errno));
}

static void conn_watch(struct net_conn *conn, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (conn->waits_to_write ? EPOLLOUT : 0u),
                                .data.ptr = conn};

    if (epoll_ctl(conn->loop->epoll, operation, conn->fd, &event) < 0)
        tool_die("epoll_ctl: %s", strerror(errno));
}

void net_conn_open(struct net_conn *conn, struct net_loop *loop, const char *host, uint16_t port,
                   net_data_fn on_data)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1;

    *conn = (struct net_conn){.loop = loop, .on_data = on_data, .waits_to_write = true};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        tool_die("%s is no IPv4 address", host);
    conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (conn->fd < 0)
        tool_die("socket: %s", strerror(errno));
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (loop->is_narrow)
        conn_narrow(conn);
    if (connect(conn->fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EINPROGRESS)
        tool_die("connect to %s:%u: %s", host, port, strerror(errno));
    conn_watch(conn, EPOLL_CTL_ADD);
}

void net_conn_stall(struct net_conn *conn)
{
    if (conn->fd >= 0 && epoll_ctl(conn->loop->epoll, EPOLL_CTL_DEL, conn->fd, NULL) < 0)
        tool_die("epoll_ctl: %s", strerror(errno));
}

void net_conn_cut(struct net_conn *conn)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (conn->fd >= 0)
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    net_conn_close(conn);
}

void net_conn_close(struct net_conn *conn)
{
    if (conn->fd >= 0 && conn->loop)
        close(conn->fd);
    free(conn->rest);
    free(conn->out);
    *conn = (struct net_conn){.fd = -1};
}

// Closed by the peer: who owns the connection sees fd < 0 and counts it.
static void conn_lost(struct net_conn *conn)
{
    close(conn->fd);
    conn->fd = -1;
}

static void conn_flush(struct net_conn *conn)
{
    while (conn->out_pos < conn->out_len) {
        ssize_t n =
            send(conn->fd, conn->out + conn->out_pos, conn->out_len - conn->out_pos, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            conn_lost(conn);
            return;
        }
        conn->out_pos += (size_t)n;
    }
    conn->out_len = conn->out_pos = 0;
    if (conn->waits_to_write) {
        conn->waits_to_write = false;
        conn_watch(conn, EPOLL_CTL_MOD);
    }
}

static void conn_append(char **buffer, size_t *len, size_t *room, const char *bytes, size_t count)
{
    if (*len + count > *room) {
        *room = (*len + count) * 2;
        *buffer = tool_grow(*buffer, *room);
    }
    memcpy(*buffer + *len, bytes, count);
    *len += count;
}

void net_conn_send(struct net_conn *conn, const char *bytes, size_t len)
{
    ssize_t sent = 0;

    if (conn->fd < 0)
        return;
    if (!conn->waits_to_write) {
        sent = send(conn->fd, bytes, len, MSG_NOSIGNAL);
        if (sent == (ssize_t)len)
            return;
        if (sent < 0 && errno != EAGAIN) {
            conn_lost(conn);
            return;
        }
        conn->waits_to_write = true;
        conn_watch(conn, EPOLL_CTL_MOD);
        sent = sent > 0 ? sent : 0;
    }
    conn_append(&conn->out, &conn->out_len, &conn->out_room, bytes + sent, len - (size_t)sent);
}

static void conn_take_rest(struct net_conn *conn)
{
    size_t used;

    if (conn->rest_len < conn->need)
        return;
    conn->need = 0;
    used = conn->on_data(conn, conn->rest, conn->rest_len);
    if (used == 0 || conn->fd < 0)
        return;
    conn->rest_len -= used;
    memmove(conn->rest, conn->rest + used, conn->rest_len);
}

static void conn_read(struct net_conn *conn)
{
    struct net_loop *loop = conn->loop;
    ssize_t n = recv(conn->fd, loop->buffer, sizeof(loop->buffer), 0);
    size_t used = 0, len = n > 0 ? (size_t)n : 0;

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        conn_lost(conn);
        return;
    }
    loop->reads++;
    if (conn->rest_len == 0) {
        used = conn->on_data(conn, loop->buffer, len);
        if (conn->fd >= 0 && used < len)
            conn_append(&conn->rest, &conn->rest_len, &conn->rest_room, loop->buffer + used,
                        len - used);
        return;
    }
    conn_append(&conn->rest, &conn->rest_len, &conn->rest_room, loop->buffer, len);
    conn_take_rest(conn);
}

static void loop_wait(struct net_loop *loop, uint64_t until_ns, struct epoll_event *ret_events,
                      int *ret_count)
{
    uint64_t now = tool_now_ns();
    uint64_t wait = until_ns > now ? until_ns - now : 0;
    struct timespec timeout = {.tv_sec = (time_t)(wait / TOOL_NS_PER_S),
                               .tv_nsec = (long)(wait % TOOL_NS_PER_S)};

    *ret_count = epoll_pwait2(loop->epoll, ret_events, LOOP_EVENTS, &timeout, NULL);
    if (*ret_count < 0 && errno != EINTR)
        tool_die("epoll_pwait2: %s", strerror(errno));
}

void net_loop_run(struct net_loop *loop, uint64_t until_ns)
{
    struct epoll_event events[LOOP_EVENTS];
    int count;

    loop_wait(loop, until_ns, events, &count);
    for (int i = 0; i < count; i++) {
        struct net_conn *conn = events[i].data.ptr;

        if (conn->fd >= 0 && (events[i].events & EPOLLOUT) != 0)
            conn_flush(conn);
        if (conn->fd >= 0 && (events[i].events & ~(uint32_t)EPOLLOUT) != 0)
            conn_read(conn);
    }
}
