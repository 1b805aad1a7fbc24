// SPDX-License-Identifier: Apache-2.0
// Socket Mode: the connections of an app ("links"). They get envelopes (envelope.c) and nothing
// else.
#include "link.h"

#include "connection.h"
#include "core.h"
#include "envelope.h"
#include "kept.h"
#include "outlet.h"
#include "packet.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "chat/presence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 1024, WARNING_MS = 10000, CLOSE_MS = 5000 };

// A hello under way: how many connections the app has elsewhere is asked of Redis.
struct greeting {
    struct gateway *gateway;
    char app_id[EVENT_ID_SIZE];
    char connection_id[EVENT_ID_SIZE];
};

struct app *app_find(struct gateway *gateway, const char *id)
{
    struct app *app;
    HASH_FIND_STR(gateway->envelopes.apps, id, app);
    return app;
}

static struct app *app_make(struct gateway *gateway, const char *id)
{
    struct app *app = app_find(gateway, id);
    if (app)
        return app;
    app = calloc(1, sizeof *app);
    if (!app)
        return NULL;
    app->gateway = gateway;
    snprintf(app->id, sizeof app->id, "%s", id);
    list_init(&app->links);
    list_init(&app->envelopes);
    HASH_ADD_STR(gateway->envelopes.apps, id, app);
    return app;
}

static void app_count(const struct app *app, enum presence_op op, presence_fn *fn, void *arg)
{
    int64_t count = 0;
    LIST_FOREACH(link, &app->links)
    {
        count++;
    }
    const struct presence_change change = {.op = op,
                                           .user_id = app->id,
                                           .device = app->gateway->device,
                                           .connections = count,
                                           .ttl_s = app->gateway->options.presence_ttl_s};
    presence_apply(app->gateway->cache, &change, fn, arg);
}

static void hello_send(struct connection *c, int64_t connections)
{
    CLEANUP(buffer_done) struct buffer out;
    int64_t life_s = c->gateway->options.link_life_s;
    buffer_init(&out, FRAME_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key_string(&w, "type", "hello");
    json_key_int(&w, "num_connections", connections);
    json_key(&w, "debug_info");
    json_open_object(&w);
    json_key_string(&w, "host", c->gateway->device);
    json_key_int(&w, "build_number", 1);
    json_key_int(&w, "approximate_connection_time", life_s);
    json_close_object(&w);
    json_key(&w, "connection_info");
    json_open_object(&w);
    json_key_string(&w, "app_id", c->app->id);
    json_close_object(&w);
    json_close_object(&w);
    c->link_state = LINK_READY;
    link_send(c, out.data, out.length);
    envelopes_wake(c->app);
}

static void link_greet(struct connection *c, int64_t connections)
{
    if (connections <= c->gateway->options.links_max) {
        hello_send(c, connections);
        return;
    }
    metric_add(METRIC_LINKS_TOO_MANY, 1);
    link_disconnect(c, "too_many_websockets");
    connection_doom(c, CLOSE_POLICY, "too many connections of the app");
}

static void on_counted(void *arg, int r, const struct presence_state *state)
{
    struct greeting *greeting = arg;
    bool alive = gateway_answer(greeting->gateway);
    struct app *app = alive ? app_find(greeting->gateway, greeting->app_id) : NULL;
    int64_t local = 0;
    struct connection *c = NULL;
    for (struct list *link = app ? app->links.next : NULL; app && link != &app->links;
         link = link->next) {
        struct connection *one = LIST_ITEM(link, struct connection, app_link);
        if (strcmp(one->id, greeting->connection_id) == 0)
            c = one;
        local++;
    }
    free(greeting);
    if (c && c->state == CONNECTION_OPEN)
        link_greet(c, r == 0 ? state->connections : local);
}

void link_open(struct connection *c)
{
    struct greeting *greeting = calloc(1, sizeof *greeting);
    c->app = greeting ? app_make(c->gateway, c->actor.app_id) : NULL;
    if (!c->app) {
        free(greeting);
        connection_doom(c, CLOSE_POLICY, "no memory");
        return;
    }
    list_append(&c->app->links, &c->app_link);
    c->link_ends_ms = loop_now_ms(c->gateway->loop) + c->gateway->options.link_life_s * 1000;
    greeting->gateway = c->gateway;
    memcpy(greeting->app_id, c->app->id, sizeof greeting->app_id);
    memcpy(greeting->connection_id, c->id, sizeof greeting->connection_id);
    gateway_ask(c->gateway);
    app_count(c->app, PRESENCE_ON, on_counted, greeting);
}

static void app_free(struct app *app)
{
    envelopes_free(app);
    HASH_DEL(app->gateway->envelopes.apps, app);
    free(app);
}

void link_leave(struct connection *c)
{
    struct app *app = c->app;
    if (!app)
        return;
    c->app = NULL;
    list_remove(&c->app_link);
    envelopes_leave(app, c);
    bool is_empty = list_is_empty(&app->links);
    if (!app->gateway->ended)
        app_count(app, is_empty ? PRESENCE_OFF : PRESENCE_ON, NULL, NULL);
    if (is_empty)
        app_free(app);
}

void link_disconnect(struct connection *c, const char *reason)
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

void link_tick(struct connection *c, int64_t now_ms)
{
    if (c->link_state == LINK_READY && now_ms >= c->link_ends_ms - WARNING_MS) {
        c->link_state = LINK_WARNED;
        link_disconnect(c, "warning");
    }
    if (c->link_state == LINK_WARNED && now_ms >= c->link_ends_ms) {
        c->link_state = LINK_REFRESHED;
        link_disconnect(c, "refresh_requested");
    }
    if (c->link_state == LINK_REFRESHED && now_ms >= c->link_ends_ms + CLOSE_MS)
        connection_doom(c, CLOSE_GOING_AWAY, "refresh");
}

void links_refresh(struct gateway *gateway)
{
    const struct gateway_options *options = &gateway->options;
    int64_t shorter_s = options->presence_ttl_s < options->link_keep_s ? options->presence_ttl_s
                                                                       : options->link_keep_s;
    int64_t now_ms = loop_now_ms(gateway->loop);
    for (struct app *app = gateway->envelopes.apps; app; app = app->hh.next) {
        if (now_ms - app->counted_ms < shorter_s * 1000 / 3)
            continue;
        app->counted_ms = now_ms;
        app_count(app, PRESENCE_ON, NULL, NULL);
        kept_linked(app);
    }
}
