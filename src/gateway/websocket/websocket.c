// SPDX-License-Identifier: Apache-2.0
// A client's WebSocket: its connection_ops.
#include "websocket.h"

#include "../channel/feed.h"
#include "../connection/connection.h"
#include "../connection/packet.h"
#include "../core.h"
#include "../gateway_session.h"
#include "../login.h"
#include "../resume/backlog.h"
#include "../watermark.h"
#include "handshake.h"
#include "inbound.h"
#include "positions.h"
#include "receive.h"
#include "socket.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"
#include "events/event_type.h"

#include <stdlib.h>

static const struct connection_ops websocket_ops;

struct websocket {
    uint32_t tag;
    struct socket socket;
    struct inbound inbound;
    struct backlog *backlog; // NULL unless native or resumed
    struct positions positions;
};

static struct websocket *websocket_of(const struct connection *c)
{
    ASSERT(c->ops == &websocket_ops);
    return CAST(websocket, c->kind);
}

int websocket_make(struct connection *c)
{
    struct websocket *websocket = TAGGED_NEW(websocket);
    if (!websocket)
        return -ERROR_MEMORY;
    inbound_init(&websocket->inbound, c);
    c->kind = websocket;
    c->ops = &websocket_ops;
    return 0;
}

static int backlog_new(struct connection *c, const struct place *place)
{
    struct backlog *backlog = malloc(sizeof *backlog);
    if (!backlog)
        return -ERROR_MEMORY;
    backlog_init(backlog, c, place);
    websocket_of(c)->backlog = backlog;
    return 0;
}

void websocket_accept(struct connection *c, const struct handshake *handshake)
{
    if (websocket_make(c) < 0 || (handshake->resumes && backlog_new(c, &handshake->place) < 0)) {
        connection_refuse(c, handshake_unavailable);
        return;
    }
    login_ticket(c, handshake->ticket, handshake->reply);
}

static int websocket_admit(struct connection *c, int r, bool known)
{
    if (r < 0)
        return 503;
    if (!known || c->actor.type == 'a')
        return 401;
    struct backlog **backlog = &websocket_of(c)->backlog;
    if (c->native && !*backlog && backlog_new(c, NULL) < 0)
        return 503;
    return *backlog && backlog_is_of_another(*backlog) ? 400 : 0;
}

static const struct statement *websocket_channels(struct connection *c, struct params *params)
{
    struct backlog *backlog = websocket_of(c)->backlog;
    return backlog ? backlog_channels(backlog, params) : session_channels(c, params);
}

// The client's position is too old: it must read everything by unread.sync.
static void gap_all_send(struct connection *c)
{
    static const char gap[] = "{\"type\":\"gap\",\"channel\":null}";
    CLEANUP(packets_done) struct packets packets = packets_of("gap", gap, sizeof gap - 1);
    connection_gap(c, &packets);
    metric_add(METRIC_GAPS_TOLD, 1);
}

static void hello_send(struct connection *c)
{
    static const char hello[] = "{\"type\":\"hello\"}";
    struct websocket *websocket = websocket_of(c);
    connection_send_text(c, "hello", hello, sizeof hello - 1);
    if (websocket->backlog && websocket->backlog->is_too_old)
        gap_all_send(c);
    if (c->is_resumable)
        positions_begin(&websocket->positions, c, websocket->backlog);
}

void websocket_hello(struct connection *c, const char *reply)
{
    socket_open(c, reply, hello_send);
}

static void websocket_open(struct connection *c, const struct result *channels, const char *reply)
{
    struct backlog *backlog = websocket_of(c)->backlog;
    c->is_resumable = c->native;
    int r = backlog ? backlog_begin(backlog, channels) : session_enter(c, channels);
    if (r < 0) {
        connection_refuse(c, handshake_unavailable);
        return;
    }
    websocket_hello(c, reply);
    if (c->is_resumable)
        watermark_request(c->gateway);
    if (backlog)
        backlog_advance(backlog);
}

static void message_take(struct connection *c, const char *text, size_t length)
{
    inbound_message(&websocket_of(c)->inbound, text, length);
}

static int websocket_input(struct connection *c, const char *data, size_t length)
{
    struct websocket *websocket = websocket_of(c);
    focus_set_answered(&websocket->inbound.focuses);
    return receive(c, &websocket->socket, message_take, data, length);
}

static void websocket_send(struct connection *c, struct packets *packets)
{
    struct websocket *websocket = websocket_of(c);
    connection_push(c, packets_frame(packets));
    if (c->is_resumable)
        positions_sent(&websocket->positions, c, websocket->backlog);
}

static void websocket_deliver(struct connection *c, const struct feed *feed,
                              const struct feed_item *item, struct packets *packets)
{
    (void)feed;
    if (c->native || event_is_slacks(item->kind, item->channel_type, item->type))
        connection_send(c, packets);
}

static void websocket_flushed(struct connection *c)
{
    struct websocket *websocket = websocket_of(c);
    focus_set_flushed(&websocket->inbound.focuses);
    if (websocket->backlog)
        backlog_advance(websocket->backlog);
}

static void websocket_tick(struct connection *c, int64_t now_ms)
{
    struct websocket *websocket = websocket_of(c);
    inbound_tick(&websocket->inbound, now_ms);
    if (c->is_resumable)
        positions_tick(&websocket->positions);
}

static void websocket_settle(struct connection *c)
{
    struct websocket *websocket = websocket_of(c);
    if (!c->is_resumable)
        return;
    backlog_settle(websocket->backlog);
    positions_settle(&websocket->positions, c, websocket->backlog);
}

static bool websocket_joins(struct connection *c, const struct feed *feed)
{
    struct backlog *backlog = websocket_of(c)->backlog;
    return backlog && backlog_joined(backlog, feed);
}

static bool websocket_awaits(struct connection *c, const struct event *event)
{
    struct backlog *backlog = websocket_of(c)->backlog;
    return backlog && backlog_awaits(backlog, event);
}

static void websocket_announce(struct connection *c, enum announcement what)
{
    static const char goodbye[] = "{\"type\":\"goodbye\"}";
    if (what == ANNOUNCE_DRAIN)
        connection_send_text(c, "goodbye", goodbye, sizeof goodbye - 1);
}

static void websocket_leave(struct connection *c)
{
    struct websocket *websocket = websocket_of(c);
    inbound_forget(&websocket->inbound);
    if (websocket->backlog)
        backlog_end(websocket->backlog);
    session_leave(c);
}

static void websocket_free(void *kind)
{
    struct websocket *websocket = CAST(websocket, kind);
    receive_done(&websocket->socket);
    TAGGED_FREE(websocket->backlog);
    TAGGED_FREE(websocket);
}

static const struct connection_ops websocket_ops = {
    .open_metric = METRIC_SOCKETS_OPEN,
    .must_answer = true,
    .channels = websocket_channels,
    .admit = websocket_admit,
    .refuse = socket_refuse,
    .open = websocket_open,
    .input = websocket_input,
    .flushed = websocket_flushed,
    .tick = websocket_tick,
    .ping = socket_ping,
    .send = websocket_send,
    .deliver = websocket_deliver,
    .gap = connection_gap,
    .awaits = websocket_awaits,
    .joins = websocket_joins,
    .settle = websocket_settle,
    .announce = websocket_announce,
    .end = socket_end,
    .leave = websocket_leave,
    .free = websocket_free,
};
