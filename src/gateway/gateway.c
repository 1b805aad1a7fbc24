// SPDX-License-Identifier: Apache-2.0
// Creates, drains and frees the gateway; its work every second and at the end of each turn.
#include "accept.h"
#include "channel/feed.h"
#include "channel/focus.h"
#include "channel/gap.h"
#include "channel/held_marks.h"
#include "channel/members.h"
#include "channel/tail_check.h"
#include "connection/connection.h"
#include "core.h"
#include "delivery.h"
#include "dispatch.h"
#include "socket_mode/app_socket.h"
#include "socket_mode/envelope.h"
#include "user/created_channels.h"
#include "user/gateway_presence.h"
#include "user/missed_marks.h"
#include "user/presence_subscriptions.h"
#include "user/token_sweep.h"
#include "user/unread_frames.h"
#include "user/users.h"
#include "watermark.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/memory.h"
#include "unread/keys.h"

#include <stdlib.h>
#include <unistd.h>

enum { SWEEP_EVERY_MS = 5000, SWEEP_MARGIN_S = 10, NEW_JOINS_S = 10 };

// Reads joins since shortly before the topics were last subscribed.
static void joins_catch_up(struct gateway *gateway)
{
    int64_t outage_ms = loop_now_ms(gateway->loop) - gateway->in_sync_ms;
    gateway->swept_ms = loop_now_ms(gateway->loop);
    members_sweep(gateway, false, outage_ms / 1000 + SWEEP_MARGIN_S);
}

static void on_resubscribed(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    tail_check_all(gateway);
    joins_catch_up(gateway);
    missed_marks_sweep(gateway);
    presence_forget(gateway);
    token_sweep_expedite(gateway);
    gateway->options.on_session(gateway->options.arg, NULL);
    gateway->in_sync_ms = loop_now_ms(gateway->loop);
}

// While topics are not subscribed, or their events are late, all events come from Postgres.
static void events_catch_up(struct gateway *gateway)
{
    if (!tail_check_is_running(gateway)) // restarting it would starve the feeds at its end
        tail_check_all(gateway);
    missed_marks_sweep(gateway);
    if (loop_now_ms(gateway->loop) - gateway->swept_ms >= SWEEP_EVERY_MS)
        joins_catch_up(gateway);
}

// The outbox was just read: `is_late` says whether its rows are late.
static void on_late(struct gateway *gateway, bool is_late)
{
    gateway->is_late = is_late || (gateway->options.log && log_is_behind(gateway->options.log));
    if (gateway->is_late)
        events_catch_up(gateway);
}

static void gateway_poll(struct gateway *gateway, int64_t now_ms)
{
    if (!cache_is_subscribed(gateway->cache)) {
        token_sweep_expedite(gateway);
        events_catch_up(gateway);
        return;
    }
    if (!gateway->users)
        gateway->is_late = false; // no one misses anything, and the outbox is not read
    if (!gateway->is_late)
        gateway->in_sync_ms = now_ms;
    if (gateway->missed_marks_due)
        missed_marks_sweep(gateway);
    else if (gateway->users)
        missed_marks_note(gateway);
}

static void feeds_trim(struct gateway *gateway, int64_t now_ms)
{
    struct feed *feed, *next;
    HASH_ITER(hh, gateway->feeds, feed, next)
    {
        if (feed->subscriber_count == 0 &&
            now_ms - feed->empty_since_ms >= gateway->options.settings.channel_linger_ms)
            feed_free(feed);
    }
}

static void on_tick(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    int64_t now_ms = loop_now_ms(gateway->loop);
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        token_sweep_tick(c, now_ms);
        connection_tick(c, now_ms);
    }
    feeds_trim(gateway, now_ms);
    gateway_poll(gateway, now_ms);
    unread_frames_retry(gateway);
    held_marks_tick(gateway);
    presence_report_offline(gateway);
    presence_refresh(gateway);
    presence_subscriptions_refresh(gateway);
    app_sockets_refresh(gateway);
    loop_timer_set(gateway->tick_timer, CONNECTION_TICK_MS);
}

// Catches up for new feeds and users: their topics were subscribed after their state was read, so
// events from in between may be missing.
static void on_check(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    gateway->check_runs = false;
    members_sweep(gateway, true, NEW_JOINS_S);
    missed_marks_sweep_resumed(gateway);
    tail_check_unconfirmed(gateway);
    members_check_due(gateway);
}

// Postgres came back, perhaps in a new era, which may assign the noted ids again.
static void on_store_up(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    struct era era = store_era(gateway->store);
    if (era.number == 0 || era.number == gateway->era)
        return;
    gateway->era = era.number;
    missed_marks_lower(gateway, era.first_xid);
    watermark_lower(gateway, era.first_xid);
}

// Held connections are in the order in which their subscriptions were requested; Redis confirms
// them in this order.
static void held_let_go(struct gateway *gateway)
{
    LIST_FOREACH(link, &gateway->held)
    {
        const struct connection *c = LIST_ITEM(link, struct connection, dirty_link);
        if (!cache_has_confirmed(gateway->cache, c->topics_asked))
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
        connection_close(LIST_ITEM(link, struct connection, link), CLOSE_GOING_AWAY, "going away");
    }
}

static const struct {
    int (*new)(struct gateway *gateway);
    void (*free)(struct gateway *gateway);
} parts[] = {
    {tail_check_new, tail_check_free},
    {gaps_new, gaps_free},
    {missed_marks_new, missed_marks_free},
    {created_channels_new, created_channels_free},
    {token_sweep_new, token_sweep_free},
    {focuses_new, focuses_free},
    {presence_subscriptions_new, presence_subscriptions_free},
    {envelopes_new, envelopes_free},
    {watermark_new, watermark_free},
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
    gateway->in_sync_ms = loop_now_ms(loop);
    list_init(&gateway->connections);
    list_init(&gateway->dirty);
    list_init(&gateway->held);
    list_init(&gateway->opening_next);
    id_make('G', gateway->device);
    gateway->feed_hooks = &delivery_hooks;
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
    loop_timer_set(gateway->drain_timer, gateway->options.settings.goodbye_ms);
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
    struct feed *feed, *next;
    HASH_ITER(hh, gateway->feeds, feed, next)
    {
        feed_free(feed);
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
