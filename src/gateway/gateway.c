// SPDX-License-Identifier: Apache-2.0
// Creates, drains and frees the gateway; what happens every second, and at the end of each turn.
#include "accept.h"
#include "changed.h"
#include "connection.h"
#include "core.h"
#include "created.h"
#include "delivery.h"
#include "dispatch.h"
#include "focus.h"
#include "gateway_presence.h"
#include "gateway_tokens.h"
#include "heads.h"
#include "held_marks.h"
#include "hole.h"
#include "marks.h"
#include "members.h"
#include "socket_mode/envelope.h"
#include "socket_mode/link.h"
#include "stream.h"
#include "users.h"
#include "watch.h"
#include "watermark.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/memory.h"
#include "unread/keys.h"

#include <stdlib.h>
#include <unistd.h>

enum { SWEEP_EVERY_MS = 5000, SWEEP_MARGIN_S = 10, YOUNG_JOINS_S = 10 };

// Joins since a little before topics were last heard.
static void joins_catch_up(struct gateway *gateway)
{
    int64_t deaf_ms = loop_now_ms(gateway->loop) - gateway->heard_ms;
    gateway->swept_ms = loop_now_ms(gateway->loop);
    members_sweep(gateway, false, deaf_ms / 1000 + SWEEP_MARGIN_S);
}

static void on_resubscribed(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    heads_check_store(gateway);
    joins_catch_up(gateway);
    marks_sweep(gateway);
    presence_forget(gateway);
    tokens_hurry(gateway);
    gateway->options.on_session(gateway->options.arg, NULL);
    gateway->heard_ms = loop_now_ms(gateway->loop);
}

// While topics cannot be heard, or bring nothing, events come from Postgres alone.
static void events_catch_up(struct gateway *gateway)
{
    if (!heads_are_read(gateway)) // else those at its end would never have their turn
        heads_check_store(gateway);
    marks_sweep(gateway);
    if (loop_now_ms(gateway->loop) - gateway->swept_ms >= SWEEP_EVERY_MS)
        joins_catch_up(gateway);
}

// Outbox rows are late, or are not, as was just read.
static void on_late(struct gateway *gateway, bool is_late)
{
    gateway->is_late = is_late || (gateway->options.log && log_is_behind(gateway->options.log));
    if (gateway->is_late)
        events_catch_up(gateway);
}

static void gateway_poll(struct gateway *gateway, int64_t now_ms)
{
    if (!cache_is_subscribed(gateway->cache)) {
        tokens_hurry(gateway);
        events_catch_up(gateway);
        return;
    }
    if (!gateway->users)
        gateway->is_late = false; // nobody misses anything, and it is not asked for
    if (!gateway->is_late)
        gateway->heard_ms = now_ms;
    if (gateway->marks_missed)
        marks_sweep(gateway);
    else if (gateway->users)
        marks_note(gateway);
}

static void streams_trim(struct gateway *gateway, int64_t now_ms)
{
    struct stream *stream, *next;
    HASH_ITER(hh, gateway->streams, stream, next)
    {
        if (stream->seat_count == 0 &&
            now_ms - stream->empty_since_ms >= gateway->options.channel_linger_ms)
            stream_free(stream);
    }
}

static void on_tick(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    int64_t now_ms = loop_now_ms(gateway->loop);
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        tokens_tick(c, now_ms);
        connection_tick(c, now_ms);
    }
    streams_trim(gateway, now_ms);
    gateway_poll(gateway, now_ms);
    changed_tend(gateway);
    marks_tend(gateway);
    presence_tend(gateway);
    presence_refresh(gateway);
    watch_refresh(gateway);
    links_refresh(gateway);
    loop_timer_set(gateway->tick_timer, CONNECTION_TICK_MS);
}

// What streams and users missed that are new here: their topics were asked for when what had
// happened was known already.
static void on_check(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    gateway->check_runs = false;
    members_sweep(gateway, true, YOUNG_JOINS_S);
    marks_sweep_resumed(gateway);
    heads_young(gateway);
    members_check_due(gateway);
}

// Postgres came back, perhaps in an era in which ids that were noted may be given once more.
static void on_store_up(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    struct era era = store_era(gateway->store);
    if (era.number == 0 || era.number == gateway->era)
        return;
    gateway->era = era.number;
    marks_lower(gateway, era.first_xid);
    watermark_lower(gateway, era.first_xid);
}

// They are in the order in which their subscriptions were asked for, and are confirmed.
static void held_let_go(struct gateway *gateway)
{
    LIST_FOREACH(link, &gateway->held)
    {
        const struct connection *c = LIST_ITEM(link, struct connection, dirty_link);
        if (!cache_has_confirmed(gateway->cache, c->subscriptions))
            return;
        list_remove(link);
        list_append(&gateway->dirty, link);
    }
}

static void on_idle(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    held_let_go(gateway);
    while (!list_is_empty(&gateway->dirty))
        connection_flush(LIST_ITEM(gateway->dirty.next, struct connection, dirty_link));
}

static void on_drained(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    LIST_FOREACH(link, &gateway->connections)
    {
        connection_doom(LIST_ITEM(link, struct connection, link), CLOSE_GOING_AWAY, "going away");
    }
}

static const struct {
    int (*new)(struct gateway *gateway);
    void (*free)(struct gateway *gateway);
} parts[] = {
    {heads_new, heads_free},     {holes_new, holes_free},         {marks_new, marks_free},
    {created_new, created_free}, {tokens_new, tokens_free},       {focuses_new, focuses_free},
    {watches_new, watches_free}, {envelopes_new, envelopes_free}, {watermark_new, watermark_free},
};

enum { PART_COUNT = sizeof parts / sizeof *parts };

static int gateway_start(struct gateway *gateway)
{
    int r = loop_timer_new(gateway->loop, on_tick, gateway, &gateway->tick_timer);
    if (r >= 0)
        r = loop_timer_new(gateway->loop, on_check, gateway, &gateway->check_timer);
    if (r >= 0)
        r = loop_timer_new(gateway->loop, on_drained, gateway, &gateway->drain_timer);
    for (int i = 0; r >= 0 && i < PART_COUNT; i++)
        r = parts[i].new(gateway);
    if (r >= 0)
        r = loop_idle_add(gateway->loop, on_idle, gateway);
    if (r < 0)
        return r;
    cache_on_message(gateway->cache, dispatch_on_message, gateway);
    cache_on_resubscribed(gateway->cache, on_resubscribed, gateway);
    cache_subscribe(gateway->cache, KEY_SESSION_TOPIC);
    store_on_up(gateway->store, STORE_SYNC, on_store_up, gateway);
    loop_timer_set(gateway->tick_timer, CONNECTION_TICK_MS);
    return 0;
}

int gateway_new(struct loop *loop, struct store *store, struct cache *cache,
                const struct gateway_options *options, struct gateway **ret_gateway)
{
    struct gateway *gateway = memory_must_new(sizeof *gateway);
    gateway->loop = loop;
    gateway->store = store;
    gateway->cache = cache;
    gateway->tag = TAG(gateway);
    gateway->options = *options;
    gateway->heard_ms = loop_now_ms(loop);
    list_init(&gateway->connections);
    list_init(&gateway->dirty);
    list_init(&gateway->held);
    list_init(&gateway->opening_next);
    id_make('G', gateway->device);
    gateway->stream_hooks = &delivery_hooks;
    gateway->on_late = on_late;
    int r = gateway_start(gateway);
    if (r < 0) {
        gateway_free(gateway);
        return r;
    }
    *ret_gateway = gateway;
    return 0;
}

void gateway_takeover(struct gateway *gateway, int fd, const struct http_head *head)
{
    accept_connection(gateway, fd, head);
}

void gateway_drain(struct gateway *gateway)
{
    if (gateway->draining)
        return;
    gateway->draining = true;
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (c->ops->announce)
            c->ops->announce(c, ANNOUNCE_DRAIN);
    }
    loop_timer_set(gateway->drain_timer, gateway->options.goodbye_ms);
}

int gateway_sockets(const struct gateway *gateway)
{
    return gateway->connection_count;
}

void gateway_free(struct gateway *gateway)
{
    if (!gateway)
        return;
    gateway->ended = true;
    LIST_FOREACH(link, &gateway->connections)
    {
        connection_abort(LIST_ITEM(link, struct connection, link));
    }
    struct stream *stream, *next;
    HASH_ITER(hh, gateway->streams, stream, next)
    {
        stream_free(stream);
    }
    presence_free(gateway);
    for (int i = 0; i < PART_COUNT; i++)
        parts[i].free(gateway);
    loop_timer_free(gateway->tick_timer);
    loop_timer_free(gateway->check_timer);
    loop_timer_free(gateway->drain_timer);
    gateway_ask(gateway);
    (void)gateway_answer(gateway);
}
