// SPDX-License-Identifier: Apache-2.0
// One connection, from takeover to close: what it reads, queues and sends.
#include "connection.h"

#include "core.h"
#include "handshake.h"
#include "inbound.h"
#include "link.h"
#include "outlet.h"
#include "packet.h"
#include "people.h"
#include "receive.h"
#include "resume.h"
#include "sse.h"
#include "sse_head.h"
#include "stream.h"
#include "ticket.h"
#include "watch.h"

#include "base/error.h"
#include "base/id.h"
#include "base/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_TIMEOUT_MS = 10000, CLOSE_TIMEOUT_MS = 2000, READ_SIZE = 16384, READS_A_TURN = 4 };

static const char hello[] = "{\"type\":\"hello\"}";

static bool connection_is_listening(const struct connection *c)
{
    return c->state == CONNECTION_OPEN || c->state == CONNECTION_CLOSING;
}

void connection_mark_dirty(struct connection *c)
{
    if (!list_is_empty(&c->dirty_link) || c->state == CONNECTION_DEAD)
        return;
    list_append(&c->gateway->dirty, &c->dirty_link);
    // For the case that it comes from an idle callback that runs after ours.
    loop_again(c->gateway->loop);
}

static void connection_free(void *arg)
{
    struct connection *c = arg;
    outlet_done(&c->outlet);
    receiver_free(c->receiver);
    sse_free(c);
    buffer_done(&c->input);
    free(c->follows);
    free(c);
}

// Leaves everything that it is in: nothing more is sent to it.
static void connection_leave(struct connection *c)
{
    ticket_forget(c);
    inbound_forget(c);
    watch_forget(c);
    link_leave(c);
    if (c->sse)
        resume_free(c);
    if (!c->user)
        return;
    stream_unseat_all(c);
    user_leave(c);
}

void connection_abort(struct connection *c)
{
    if (c->state == CONNECTION_DEAD)
        return;
    connection_leave(c);
    c->state = CONNECTION_DEAD;
    c->gateway->connection_count--;
    list_remove(&c->link);
    list_remove(&c->dirty_link);
    loop_watch_free(TAKE(c->watch));
    close(c->fd);
    loop_defer(c->gateway->loop, connection_free, c);
}

void connection_doom(struct connection *c, enum close_code code, const char *reason)
{
    if (c->state != CONNECTION_OPEN)
        return;
    c->state = CONNECTION_DOOMED;
    c->close_code = (uint16_t)code;
    c->close_reason = reason;
    connection_mark_dirty(c);
}

void connection_doom_counted(struct connection *c, enum metric metric, enum close_code code,
                             const char *reason)
{
    if (c->state == CONNECTION_OPEN)
        metric_add(metric, 1);
    connection_doom(c, code, reason);
}

void connection_slow(struct connection *c)
{
    connection_doom_counted(c, METRIC_SOCKETS_SLOW, CLOSE_POLICY, "slow");
}

static void connection_control(struct connection *c, enum packet_opcode opcode, const void *payload,
                               size_t length)
{
    if (outlet_control(&c->outlet, opcode, payload, length) < 0)
        connection_slow(c);
    connection_mark_dirty(c);
}

// Whether more waits than may, whatever is added now: one frame may be larger than the queue, and
// so may be all that one turn brings. Therefore it is tried first what the socket takes.
static bool connection_is_full(struct connection *c)
{
    size_t max = (size_t)c->gateway->options.queue_max_bytes;
    if (outlet_unsent(&c->outlet) <= max)
        return false;
    if (!cache_has_confirmed(c->gateway->cache, c->subscriptions))
        return true;
    // That it is broken is found at the end of the turn.
    return outlet_flush(&c->outlet, c->fd) > 0 && outlet_unsent(&c->outlet) > max;
}

static void packet_send(struct connection *c, struct packet *packet)
{
    if (!packet) {
        connection_doom(c, CLOSE_POLICY, "no memory");
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
    if (c->state != CONNECTION_OPEN || c->is_link)
        return; // a link gets envelopes only
    if (!c->sse) {
        packet_send(c, packets_frame(packets));
        return;
    }
    const char *id = c->sse->is_settled ? c->gateway->watermark.text : c->sse->id;
    packet_send(c, packets_event(packets, id));
}

void link_send(struct connection *c, const char *text, size_t length)
{
    if (c->state != CONNECTION_OPEN)
        return;
    struct packet *packet = packet_new(text, length);
    packet_send(c, packet);
    packet_unref(packet);
}

void connection_send_text(struct connection *c, const char *text, size_t length)
{
    CLEANUP(packets_done) struct packets packets = packets_of(text, length);
    connection_send(c, &packets);
}

// From now on it only ends: what is queued goes out, what comes is thrown away once Close was
// received.
static void connection_end(struct connection *c)
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
    c->is_deaf = true;
    loop_watch_set(c->watch, EPOLLIN);
}

// Ends an event stream behind what is partly sent, with a comment for people who look.
static void connection_end_stream(struct connection *c)
{
    char text[160];
    int length = snprintf(text, sizeof text, ": closed: %s\n\n", c->close_reason);
    outlet_drop_backlog(&c->outlet);
    if (outlet_raw(&c->outlet, text, (size_t)length) < 0) {
        connection_abort(c);
        return;
    }
    connection_end(c);
}

// Sends Close in place of the backlog.
static void connection_close(struct connection *c)
{
    if (c->sse) {
        connection_end_stream(c);
        return;
    }
    char payload[125] = {(char)(c->close_code >> 8), (char)(c->close_code & 0xff)};
    size_t length = strlen(c->close_reason);
    memcpy(payload + 2, c->close_reason, length);
    outlet_drop_backlog(&c->outlet);
    if (outlet_control(&c->outlet, PACKET_CLOSE, payload, 2 + length) < 0) {
        connection_abort(c);
        return;
    }
    connection_end(c);
}

void connection_expire(struct connection *c, const char *reply, const char *text)
{
    struct packet *packet = packet_new(text, strlen(text));
    bool fits = packet && outlet_raw(&c->outlet, reply, strlen(reply)) >= 0 &&
                outlet_raw(&c->outlet, packet->data, packet->length) >= 0;
    packet_unref(packet);
    if (!fits) {
        connection_abort(c);
        return;
    }
    c->state = CONNECTION_OPEN;
    loop_watch_set(c->watch, EPOLLIN);
    connection_doom(c, CLOSE_POLICY, "expired");
}

void connection_closed(struct connection *c)
{
    outlet_drop_backlog(&c->outlet);
    connection_end(c);
}

// All is sent: the server ends TCP first, and waits for the peer's end so that no reset overtakes
// what was sent.
static void connection_flushed(struct connection *c)
{
    if (c->state != CONNECTION_CLOSING)
        return;
    if (c->peer_closed) {
        connection_abort(c);
        return;
    }
    if (c->is_deaf)
        (void)shutdown(c->fd, SHUT_WR);
}

void connection_flush(struct connection *c)
{
    list_remove(&c->dirty_link);
    if (c->state == CONNECTION_OPEN && !cache_has_confirmed(c->gateway->cache, c->subscriptions)) {
        list_append(&c->gateway->held, &c->dirty_link);
        return;
    }
    if (c->state == CONNECTION_DOOMED)
        connection_close(c);
    if (c->state == CONNECTION_DEAD)
        return;
    int r = outlet_flush(&c->outlet, c->fd);
    if (r < 0) {
        connection_abort(c);
        return;
    }
    if (c->state != CONNECTION_TICKET)
        loop_watch_set(c->watch, r > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    list_remove(&c->dirty_link);
    if (r == 0)
        connection_flushed(c);
    if (c->sse)
        resume_go_on(c);
}

void connection_begin(struct connection *c)
{
    c->state = CONNECTION_OPEN;
    // Who has its hello hears of all that is published from then on.
    c->subscriptions = cache_subscriptions(c->gateway->cache);
    c->heard_ms = c->pinged_ms = loop_now_ms(c->gateway->loop);
    metric_add(METRIC_SOCKETS_OPENED, 1);
    loop_watch_set(c->watch, EPOLLIN);
}

void connection_open(struct connection *c, const char *reply)
{
    if (outlet_raw(&c->outlet, reply, strlen(reply)) < 0) {
        connection_abort(c);
        return;
    }
    connection_begin(c);
    if (c->is_link)
        link_open(c);
    else
        connection_send_text(c, hello, sizeof hello - 1);
    struct buffer early = c->input;
    buffer_init(&c->input, HANDSHAKE_HEAD_MAX);
    if (early.length > 0 && receive(c, early.data, early.length) < 0)
        c->is_deaf = true;
    buffer_done(&early);
}

// The head is here: validates it, keeps what came behind it, and asks for the ticket's owner.
static void connection_upgrade(struct connection *c, size_t head_length)
{
    struct handshake handshake;
    if (sse_head_is_one(c->input.data, head_length)) {
        sse_accept(c, head_length);
        return;
    }
    const char *refusal = handshake_read(c->input.data, head_length, &handshake);
    if (c->gateway->draining)
        refusal = handshake_unavailable;
    if (refusal) {
        connection_refuse(c, refusal);
        return;
    }
    buffer_consume(&c->input, head_length);
    c->is_link = handshake.is_link;
    c->state = CONNECTION_TICKET;
    loop_watch_set(c->watch, 0);
    ticket_use(c, handshake.ticket, handshake.reply);
}

static void connection_read_head(struct connection *c)
{
    size_t head_length = handshake_head_length(c->input.data, c->input.length);
    if (head_length > 0) {
        connection_upgrade(c, head_length);
        return;
    }
    if (buffer_failed(&c->input) || c->input.length == HANDSHAKE_HEAD_MAX)
        connection_refuse(c, handshake_too_large);
}

static void connection_take(struct connection *c, const char *data, size_t length)
{
    c->heard_ms = loop_now_ms(c->gateway->loop);
    if (c->is_deaf)
        return;
    if (c->state == CONNECTION_HEAD) {
        buffer_append(&c->input, data, length);
        connection_read_head(c);
    } else if (receive(c, data, length) < 0) {
        c->is_deaf = true;
    }
}

static void connection_read(struct connection *c)
{
    char data[READ_SIZE];
    for (int i = 0; i < READS_A_TURN; i++) {
        size_t wanted = sizeof data;
        if (c->state == CONNECTION_HEAD)
            wanted = HANDSHAKE_HEAD_MAX - c->input.length;
        ssize_t length = read(c->fd, data, wanted);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (length <= 0) {
            connection_abort(c);
            return;
        }
        connection_take(c, data, (size_t)length);
        bool more = c->state == CONNECTION_HEAD || connection_is_listening(c);
        if (!more || (size_t)length < wanted)
            return;
    }
}

static void connection_on_ready(void *arg, uint32_t events)
{
    struct connection *c = arg;
    if (events & EPOLLOUT)
        connection_mark_dirty(c);
    if (c->state == CONNECTION_HEAD || connection_is_listening(c)) {
        if (events & ~(uint32_t)EPOLLOUT)
            connection_read(c);
    } else if (events & (EPOLLHUP | EPOLLERR)) {
        connection_abort(c);
    }
}

void connection_accept(struct gateway *gateway, int fd, const char *head, size_t length)
{
    struct connection *c = calloc(1, sizeof *c);
    if (!c ||
        loop_watch_new_peer(gateway->loop, fd, EPOLLIN, connection_on_ready, c, &c->watch) < 0) {
        free(c);
        close(fd);
        return;
    }
    c->gateway = gateway;
    c->fd = fd;
    c->state = CONNECTION_HEAD;
    c->heard_ms = loop_now_ms(gateway->loop);
    c->deadline_ms = c->heard_ms + HEAD_TIMEOUT_MS;
    id_make('W', c->id);
    list_append(&gateway->connections, &c->link);
    gateway->connection_count++;
    list_init(&c->dirty_link);
    list_init(&c->user_link);
    list_init(&c->calls);
    list_init(&c->watch_asks);
    list_init(&c->app_link);
    outlet_init(&c->outlet);
    buffer_init(&c->input, HANDSHAKE_HEAD_MAX);
    buffer_append(&c->input, head, length);
    connection_read_head(c);
}

static void connection_ping(struct connection *c, int64_t now_ms)
{
    c->pinged_ms = now_ms;
    if (c->sse) {
        sse_beat(c);
        return;
    }
    connection_control(c, PACKET_PING, &now_ms, sizeof now_ms);
}

void connection_tick(struct connection *c, int64_t now_ms)
{
    const struct gateway_options *options = &c->gateway->options;
    switch (c->state) {
    case CONNECTION_HEAD:
    case CONNECTION_CLOSING:
        if (now_ms >= c->deadline_ms)
            connection_abort(c);
        break;
    case CONNECTION_OPEN:
        if (now_ms - c->pinged_ms >= CONNECTION_TICK_MS)
            c->subscriptions = 0; // who waited for so long waits no more
        if (c->is_link)
            link_tick(c, now_ms);
        if (!c->sse &&
            now_ms - c->heard_ms >= options->ping_interval_ms + options->pong_timeout_ms) {
            connection_doom_counted(c, METRIC_SOCKETS_SILENT, CLOSE_POLICY, "silent");
        } else if (now_ms - c->pinged_ms >= options->ping_interval_ms - CONNECTION_TICK_MS) {
            // The next tick would be too late: clients count on a ping within the interval.
            connection_ping(c, now_ms);
        }
        break;
    default:
        break;
    }
}
