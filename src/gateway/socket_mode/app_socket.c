// SPDX-License-Identifier: Apache-2.0
// An app socket (Socket Mode): its connection_ops. It is sent only envelopes (envelope.c), hello
// and disconnect; its input is acks.
#include "app_socket.h"

#include "../connection/connection.h"
#include "../connection/outlet.h"
#include "../connection/packet.h"
#include "../core.h"
#include "../gateway_session.h"
#include "../login.h"
#include "../websocket/handshake.h"
#include "../websocket/receive.h"
#include "../websocket/socket.h"
#include "app.h"
#include "app_backlog.h"
#include "envelope.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "chat/presence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 1024, WARNING_MS = 10000, CLOSE_MS = 5000 };

static const struct connection_ops app_socket_ops;

static struct app_socket *app_socket_of(const struct connection *c)
{
    ASSERT(c->ops == &app_socket_ops);
    return CAST(app_socket, c->kind);
}

// A hello that waits for Redis to count the app's connections on all instances.
struct greeting {
    uint32_t tag;
    struct gateway *gateway;
    char app_id[EVENT_ID_SIZE];
    char connection_id[EVENT_ID_SIZE];
};

static void app_count(const struct app *app, enum presence_op op, presence_fn *fn, void *arg)
{
    int64_t count = 0;
    LIST_FOREACH(link, &app->sockets)
    {
        count++;
    }
    const struct presence_change change = {.op = op,
                                           .user_id = app->id,
                                           .device = app->gateway->device,
                                           .connections = count,
                                           .ttl_s = app->gateway->options.settings.presence_ttl_s};
    presence_apply(app->gateway->cache, &change, fn, arg);
}

static void hello_send(struct app_socket *app_socket, int64_t connections)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX);
    const struct gateway *gateway = app_socket->connection->gateway;
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key_string(&w, "type", "hello");
    json_key_int(&w, "num_connections", connections);
    json_key(&w, "debug_info");
    json_open_object(&w);
    json_key_string(&w, "host", gateway->device);
    json_key_int(&w, "build_number", 1);
    json_key_int(&w, "approximate_connection_time", gateway->options.settings.app_socket_life_s);
    json_close_object(&w);
    json_key(&w, "connection_info");
    json_open_object(&w);
    json_key_string(&w, "app_id", app_socket->app->id);
    json_close_object(&w);
    json_close_object(&w);
    app_socket->state = APP_SOCKET_READY;
    app_socket_send(app_socket, out.data, out.length);
    envelopes_wake(app_socket->app);
}

// Sends `disconnect`, ahead of queued packets. `reason` is static text.
static void app_socket_disconnect(struct connection *c, const char *reason)
{
    char text[FRAME_MAX];
    int length =
        snprintf(text, sizeof text,
                 "{\"type\":\"disconnect\",\"reason\":\"%s\",\"debug_info\":{\"host\":\"%s\"}}",
                 reason, c->gateway->device);
    struct packet *packet = c->state == CONNECTION_OPEN ? packet_new(text, (size_t)length) : NULL;
    if (packet && outlet_raw(&c->outlet, packet->data, packet->length) < 0)
        connection_slow(c);
    packet_unref(packet);
    connection_mark_dirty(c);
}

static void app_socket_greet(struct app_socket *app_socket, int64_t connections)
{
    struct connection *c = app_socket->connection;
    if (connections <= c->gateway->options.settings.app_sockets_max) {
        hello_send(app_socket, connections);
        return;
    }
    metric_add(METRIC_APP_SOCKETS_TOO_MANY, 1);
    app_socket_disconnect(c, "too_many_websockets");
    connection_close(c, CLOSE_POLICY, "too many connections of the app");
}

static void on_counted(void *arg, int r, const struct presence_state *state)
{
    struct greeting *greeting = CAST(greeting, arg);
    bool alive = gateway_answer(greeting->gateway);
    struct app *app = alive ? app_find(greeting->gateway, greeting->app_id) : NULL;
    int64_t local = 0;
    struct app_socket *found = NULL;
    for (struct list *item = app ? app->sockets.next : NULL; app && item != &app->sockets;
         item = item->next) {
        struct app_socket *app_socket = LIST_ITEM(item, struct app_socket, app_link);
        if (strcmp(app_socket->connection->id, greeting->connection_id) == 0)
            found = app_socket;
        local++;
    }
    TAGGED_FREE(greeting);
    if (found && found->connection->state == CONNECTION_OPEN)
        app_socket_greet(found, r == 0 ? state->connections : local);
}

static void hello_ask(struct connection *c)
{
    struct app_socket *app_socket = app_socket_of(c);
    struct greeting *greeting = TAGGED_NEW(greeting);
    app_socket->app = greeting ? app_make(c->gateway, c->actor.app_id) : NULL;
    if (!app_socket->app) {
        TAGGED_FREE(greeting);
        connection_close(c, CLOSE_POLICY, "no memory");
        return;
    }
    list_append(&app_socket->app->sockets, &app_socket->app_link);
    app_socket->ends_ms =
        loop_now_ms(c->gateway->loop) + c->gateway->options.settings.app_socket_life_s * 1000;
    greeting->gateway = c->gateway;
    memcpy(greeting->app_id, app_socket->app->id, sizeof greeting->app_id);
    memcpy(greeting->connection_id, c->id, sizeof greeting->connection_id);
    gateway_ask(c->gateway);
    app_count(app_socket->app, PRESENCE_ON, on_counted, greeting);
}

void app_socket_accept(struct connection *c, const struct handshake *handshake)
{
    struct app_socket *app_socket = TAGGED_NEW(app_socket);
    if (!app_socket) {
        connection_refuse(c, handshake_unavailable);
        return;
    }
    app_socket->connection = c;
    list_init(&app_socket->app_link);
    c->kind = app_socket;
    c->ops = &app_socket_ops;
    login_ticket(c, handshake->ticket, handshake->reply);
}

static int app_socket_admit(struct connection *c, int r, bool known)
{
    if (r < 0)
        return 503;
    return known && c->actor.type == 'a' ? 0 : 401;
}

static void app_socket_open(struct connection *c, const struct result *channels, const char *reply)
{
    if (session_enter(c, channels) < 0)
        connection_refuse(c, handshake_unavailable);
    else
        socket_open(c, reply, hello_ask);
}

// Handles {"envelope_id":…}, perhaps with a payload.
static void ack_take(struct connection *c, const char *text, size_t length)
{
    CLEANUP_JSON json_t *message = NULL;
    int r = json_read(text, length, JSON_DEPTH_MAX, c->gateway->options.settings.socket_values_max,
                      &message);
    metric_add(METRIC_SOCKET_VALUES, r == -ERROR_REQUEST_TOO_LARGE);
    if (r < 0)
        return;
    const char *id = json_string_value(json_object_get(message, "envelope_id"));
    if (id)
        envelope_ack(app_socket_of(c), id);
}

static int app_socket_input(struct connection *c, const char *data, size_t length)
{
    return receive(c, &app_socket_of(c)->socket, ack_take, data, length);
}

static void app_socket_deliver(struct connection *c, const struct feed *feed,
                               const struct feed_item *item, struct packets *packets)
{
    (void)packets;
    envelope_offer(app_socket_of(c), feed, item);
}

static void app_socket_announce(struct connection *c, enum announcement what)
{
    app_socket_disconnect(c, what == ANNOUNCE_DRAIN ? "refresh_requested" : "link_disabled");
}

static void app_leave(struct app_socket *app_socket)
{
    struct app *app = TAKE(app_socket->app);
    list_remove(&app_socket->app_link);
    envelopes_leave(app, app_socket);
    bool is_empty = list_is_empty(&app->sockets);
    if (!app->gateway->ended)
        app_count(app, is_empty ? PRESENCE_OFF : PRESENCE_ON, NULL, NULL);
    if (is_empty)
        app_free(app);
}

static void app_socket_leave(struct connection *c)
{
    struct app_socket *app_socket = app_socket_of(c);
    if (app_socket->app)
        app_leave(app_socket);
    session_leave(c);
}

static void app_socket_tick(struct connection *c, int64_t now_ms)
{
    struct app_socket *app_socket = app_socket_of(c);
    if (app_socket->state == APP_SOCKET_READY && now_ms >= app_socket->ends_ms - WARNING_MS) {
        app_socket->state = APP_SOCKET_WARNED;
        app_socket_disconnect(c, "warning");
    }
    if (app_socket->state == APP_SOCKET_WARNED && now_ms >= app_socket->ends_ms) {
        app_socket->state = APP_SOCKET_REFRESHED;
        app_socket_disconnect(c, "refresh_requested");
    }
    if (app_socket->state == APP_SOCKET_REFRESHED && now_ms >= app_socket->ends_ms + CLOSE_MS)
        connection_close(c, CLOSE_GOING_AWAY, "refresh");
}

static void app_socket_free(void *kind)
{
    struct app_socket *app_socket = CAST(app_socket, kind);
    receive_done(&app_socket->socket);
    TAGGED_FREE(app_socket);
}

static const struct connection_ops app_socket_ops = {
    .open_metric = METRIC_SOCKETS_OPEN,
    .must_answer = true,
    .channels = session_channels,
    .admit = app_socket_admit,
    .refuse = socket_refuse,
    .open = app_socket_open,
    .input = app_socket_input,
    .tick = app_socket_tick,
    .ping = socket_ping,
    .deliver = app_socket_deliver,
    .announce = app_socket_announce,
    .end = socket_end,
    .leave = app_socket_leave,
    .free = app_socket_free,
};

void app_sockets_refresh(struct gateway *gateway)
{
    const struct gateway_options *options = &gateway->options;
    int64_t shorter_s = options->settings.presence_ttl_s < options->settings.app_socket_keep_s
                            ? options->settings.presence_ttl_s
                            : options->settings.app_socket_keep_s;
    int64_t now_ms = loop_now_ms(gateway->loop);
    for (struct app *app = gateway->envelopes->apps; app; app = app->hh.next) {
        if (now_ms - app->counted_ms < shorter_s * 1000 / 3)
            continue;
        app->counted_ms = now_ms;
        app_count(app, PRESENCE_ON, NULL, NULL);
        app_backlog_extend(app);
    }
}
