// SPDX-License-Identifier: Apache-2.0
// One connection, from takeover to close: its input, its output queue, and how it ends.
#include "connection.h"

#include "../core.h"
#include "outlet.h"
#include "packet.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLOSE_TIMEOUT_MS = 2000, READ_SIZE = 16384, READS_A_TURN = 4 };

static bool connection_is_listening(const struct connection *c)
{
    return c->state == CONNECTION_OPEN || c->state == CONNECTION_CLOSING;
}

void connection_mark_dirty(struct connection *c)
{
    if (!list_is_empty(&c->dirty_link) || c->state == CONNECTION_DEAD)
        return;
    list_append(&c->gateway->dirty, &c->dirty_link);
    // The caller may be an idle callback that runs after ours.
    loop_again(c->gateway->loop);
}

static void connection_free(void *arg)
{
    struct connection *c = CAST(connection, arg);
    outlet_done(&c->outlet);
    if (c->kind)
        c->ops->free(c->kind);
    free(c->subscriptions);
    TAGGED_FREE(c);
}

static void connection_leave(struct connection *c)
{
    if (c->ops->leave)
        c->ops->leave(c);
}

void connection_abort(struct connection *c)
{
    if (c->state == CONNECTION_DEAD)
        return;
    connection_leave(c);
    c->state = CONNECTION_DEAD;
    ASSERT(c->gateway->connection_count > 0);
    c->gateway->connection_count--;
    list_remove(&c->link);
    list_remove(&c->dirty_link);
    loop_io_free(TAKE(c->io));
    close(c->fd);
    loop_defer(c->gateway->loop, connection_free, c);
}

void connection_close(struct connection *c, enum close_code code, const char *reason)
{
    if (c->state != CONNECTION_OPEN)
        return;
    c->state = CONNECTION_CLOSE_DUE;
    c->close_code = (uint16_t)code;
    c->close_reason = reason;
    connection_mark_dirty(c);
}

void connection_close_counted(struct connection *c, enum metric metric, enum close_code code,
                              const char *reason)
{
    if (c->state == CONNECTION_OPEN)
        metric_add(metric, 1);
    connection_close(c, code, reason);
}

void connection_slow(struct connection *c)
{
    connection_close_counted(c, METRIC_SOCKETS_SLOW, CLOSE_POLICY, "slow");
}

// Whether the queue is full before another packet is added. The limit does not count that packet:
// one frame may be larger than the limit, and so may the output of one turn. Flushes the queue
// before it is called full.
static bool connection_is_full(struct connection *c)
{
    size_t max = (size_t)c->gateway->options.settings.socket_queue_max_bytes;
    if (outlet_unsent(&c->outlet) <= max)
        return false;
    if (!cache_has_confirmed(c->gateway->cache, c->topics_asked))
        return true;
    // A broken connection is detected at the end of the turn.
    return outlet_flush(&c->outlet, c->fd) > 0 && outlet_unsent(&c->outlet) > max;
}

void connection_push(struct connection *c, struct packet *packet)
{
    if (!packet) {
        connection_close(c, CLOSE_POLICY, "no memory");
        return;
    }
    if (connection_is_full(c) || outlet_push(&c->outlet, packet) < 0) {
        connection_slow(c);
        return;
    }
    connection_mark_dirty(c);
}

void connection_send(struct connection *c, struct packets *packets)
{
    if (c->state == CONNECTION_OPEN && c->ops->send)
        c->ops->send(c, packets);
}

void connection_send_text(struct connection *c, const char *type, const char *text, size_t length)
{
    CLEANUP(packets_done) struct packets packets = packets_of(type, text, length);
    connection_send(c, &packets);
}

void connection_gap(struct connection *c, struct packets *packets)
{
    if (c->native)
        connection_send(c, packets);
    else
        connection_close_counted(c, METRIC_SOCKETS_GAP, CLOSE_RESTART, "gap");
}

bool connection_awaits(struct connection *c, const struct event *event)
{
    return c->ops->awaits && c->ops->awaits(c, event);
}

void connection_end(struct connection *c)
{
    connection_leave(c);
    c->state = CONNECTION_CLOSING;
    c->deadline_ms = loop_now_ms(c->gateway->loop) + CLOSE_TIMEOUT_MS;
    connection_mark_dirty(c);
}

void connection_refuse(struct connection *c, const char *reply)
{
    if (outlet_raw(&c->outlet, reply, strlen(reply)) < 0) {
        connection_abort(c);
        return;
    }
    connection_end(c);
    c->ignores_input = true;
    loop_io_set(c->io, EPOLLIN);
}

// The queue is empty: the server half-closes first, then waits for the peer to close, so that no
// TCP reset overtakes the output.
static void connection_flushed(struct connection *c)
{
    if (c->state != CONNECTION_CLOSING)
        return;
    if (c->peer_closed) {
        connection_abort(c);
        return;
    }
    if (c->ignores_input)
        (void)shutdown(c->fd, SHUT_WR);
}

void connection_flush(struct connection *c)
{
    list_remove(&c->dirty_link);
    if (c->state == CONNECTION_OPEN && !cache_has_confirmed(c->gateway->cache, c->topics_asked)) {
        list_append(&c->gateway->held, &c->dirty_link);
        return;
    }
    if (c->state == CONNECTION_CLOSE_DUE)
        c->ops->end(c);
    if (c->state == CONNECTION_DEAD)
        return;
    int r = outlet_flush(&c->outlet, c->fd);
    if (r < 0) {
        connection_abort(c);
        return;
    }
    if (c->state != CONNECTION_LOGIN)
        loop_io_set(c->io, r > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    list_remove(&c->dirty_link);
    if (r == 0)
        connection_flushed(c);
    if (c->ops->flushed)
        c->ops->flushed(c);
}

void connection_begin(struct connection *c)
{
    c->state = CONNECTION_OPEN;
    // The hello is sent once all topics are subscribed: the client then receives everything
    // published after it.
    c->topics_asked = cache_subscriptions(c->gateway->cache);
    c->input_ms = c->pinged_ms = loop_now_ms(c->gateway->loop);
    metric_add(METRIC_SOCKETS_OPENED, 1);
    loop_io_set(c->io, EPOLLIN);
}

static void connection_take(struct connection *c, const char *data, size_t length)
{
    c->input_ms = loop_now_ms(c->gateway->loop);
    if (!c->ignores_input && c->ops->input(c, data, length) < 0)
        c->ignores_input = true;
}

static void connection_read(struct connection *c)
{
    char data[READ_SIZE];
    for (int i = 0; i < READS_A_TURN; i++) {
        ssize_t length = read(c->fd, data, sizeof data);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length <= 0) {
            connection_abort(c);
            return;
        }
        connection_take(c, data, (size_t)length);
        if (!connection_is_listening(c) || (size_t)length < sizeof data)
            return;
    }
}

static void connection_on_ready(void *arg, uint32_t events)
{
    struct connection *c = CAST(connection, arg);
    if (events & EPOLLOUT)
        connection_mark_dirty(c);
    if (connection_is_listening(c)) {
        if (events & ~(uint32_t)EPOLLOUT)
            connection_read(c);
    } else if (events & (EPOLLHUP | EPOLLERR)) {
        connection_abort(c);
    }
}

struct connection *connection_adopt(struct gateway *gateway, int fd)
{
    static const struct connection_ops no_ops = {0};
    struct connection *c = TAGGED_NEW(connection);
    if (!c || loop_io_new_peer(gateway->loop, fd, 0, connection_on_ready, c, &c->io) < 0) {
        free(c);
        close(fd);
        return NULL;
    }
    c->gateway = gateway;
    c->ops = &no_ops;
    c->fd = fd;
    c->state = CONNECTION_LOGIN;
    c->input_ms = loop_now_ms(gateway->loop);
    id_make('W', c->id);
    list_append(&gateway->connections, &c->link);
    gateway->connection_count++;
    list_init(&c->dirty_link);
    list_init(&c->user_link);
    outlet_init(&c->outlet);
    return c;
}

static void open_tick(struct connection *c, int64_t now_ms)
{
    const struct gateway_options *options = &c->gateway->options;
    if (now_ms - c->pinged_ms >= CONNECTION_TICK_MS)
        c->topics_asked = 0; // waited long enough: Redis may be away
    if (c->ops->tick)
        c->ops->tick(c, now_ms);
    if (c->ops->must_answer && now_ms - c->input_ms >= options->settings.ping_interval_ms +
                                                           options->settings.pong_timeout_ms) {
        connection_close_counted(c, METRIC_SOCKETS_SILENT, CLOSE_POLICY, "silent");
    } else if (now_ms - c->pinged_ms >= options->settings.ping_interval_ms - CONNECTION_TICK_MS) {
        // The next tick would be too late: clients count on a ping within the interval.
        c->pinged_ms = now_ms;
        c->ops->ping(c, now_ms);
    }
}

int64_t connection_expires_at(const struct connection *c)
{
    return (clock_wall_us() / 1000 + c->expires_ms - loop_now_ms(c->gateway->loop) + 500) / 1000;
}

void connection_tick(struct connection *c, int64_t now_ms)
{
    switch (c->state) {
    case CONNECTION_CLOSING:
        if (now_ms >= c->deadline_ms)
            connection_abort(c);
        break;
    case CONNECTION_OPEN:
        open_tick(c, now_ms);
        break;
    default:
        break;
    }
}
