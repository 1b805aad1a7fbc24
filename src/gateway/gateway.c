// SPDX-License-Identifier: Apache-2.0
// Creates, drains and frees the gateway; what happens every second, and at the end of each turn.
#include "accept.h"
#include "changed.h"
#include "connection.h"
#include "core.h"
#include "ephemeral.h"
#include "focus.h"
#include "heads.h"
#include "held_marks.h"
#include "hole.h"
#include "late.h"
#include "marks.h"
#include "members.h"
#include "people.h"
#include "presence.h"
#include "socket_mode/envelope.h"
#include "socket_mode/kept.h"
#include "socket_mode/link.h"
#include "stream.h"
#include "tokens.h"
#include "watch.h"
#include "watermark.h"

#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "unread/keys.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SWEEP_EVERY_MS = 5000, SWEEP_MARGIN_S = 10 };

// Where it had a seq, streams find the hole and read it from Postgres.
static void event_not_understood(struct gateway *gateway, const char *topic, const char *reason)
{
    metric_add(METRIC_EVENTS_UNKNOWN, 1);
    if (log_is_due(&gateway->unknown_told_ms))
        log_write(LOG_WARN, "gateway", "a message on %s is %s", topic, reason);
}

static void on_message(void *arg, const char *topic, const char *data, size_t length)
{
    char reason[EVENT_REASON_SIZE];
    struct event *event;
    char id[EVENT_ID_SIZE];
    if (topic_id(topic, "presence-events", id)) {
        watch_hear(arg, id, data, length);
        return;
    }
    if (strcmp(topic, KEY_SESSION_TOPIC) == 0) {
        tokens_hear(arg, data, length);
        return;
    }
    if (length > 1 && data[0] == '!') {
        ephemeral_hear(arg, topic, data, length);
        return;
    }
    if (event_decode(data, length, &event, reason) < 0) {
        event_not_understood(arg, topic, reason);
        return;
    }
    people_on_message(arg, topic, event);
    event_unref(event);
}

// Joins since a little before topics were last heard.
static void joins_catch_up(struct gateway *gateway)
{
    int64_t deaf_ms = loop_now_ms(gateway->loop) - gateway->heard_ms;
    gateway->swept_ms = loop_now_ms(gateway->loop);
    members_sweep(gateway, false, deaf_ms / 1000 + SWEEP_MARGIN_S);
}

static void on_resubscribed(void *arg)
{
    struct gateway *gateway = arg;
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

void gateway_note_late(struct gateway *gateway, bool is_late)
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
    if (gateway->marks.missed)
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
    struct gateway *gateway = arg;
    int64_t now_ms = loop_now_ms(gateway->loop);
    LIST_FOREACH(link, &gateway->connections)
    {
        connection_tick(LIST_ITEM(link, struct connection, link), now_ms);
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
    struct gateway *gateway = arg;
    held_let_go(gateway);
    while (!list_is_empty(&gateway->dirty))
        connection_flush(LIST_ITEM(gateway->dirty.next, struct connection, dirty_link));
}

static void on_drained(void *arg)
{
    struct gateway *gateway = arg;
    LIST_FOREACH(link, &gateway->connections)
    {
        connection_doom(LIST_ITEM(link, struct connection, link), CLOSE_GOING_AWAY, "going away");
    }
}

static int timers_new(struct gateway *gateway)
{
    const struct {
        loop_fn *fn;
        struct loop_timer **timer;
    } timers[] = {
        {on_tick, &gateway->tick_timer},
        {heads_on_timer, &gateway->heads.timer},
        {hole_on_timer, &gateway->holes.timer},
        {members_on_timer, &gateway->members.timer},
        {tokens_on_timer, &gateway->tokens.timer},
        {tokens_on_doubt_timer, &gateway->tokens.doubt_timer},
        {on_drained, &gateway->drain_timer},
        {watermark_on_timer, &gateway->watermark.timer},
        {watch_on_timer, &gateway->watching.timer},
        {envelope_on_timer, &gateway->envelopes.timer},
        {focus_on_timer, &gateway->focuses.timer},
    };
    int r = 0;
    for (size_t i = 0; r >= 0 && i < sizeof timers / sizeof *timers; i++)
        r = loop_timer_new(gateway->loop, timers[i].fn, gateway, timers[i].timer);
    return r;
}

static int gateway_start(struct gateway *gateway)
{
    int r = timers_new(gateway);
    if (r >= 0)
        r = loop_idle_add(gateway->loop, on_idle, gateway);
    if (r < 0)
        return r;
    cache_on_message(gateway->cache, on_message, gateway);
    cache_on_resubscribed(gateway->cache, on_resubscribed, gateway);
    cache_subscribe(gateway->cache, KEY_SESSION_TOPIC);
    store_on_up(gateway->store, STORE_SYNC, marks_on_store_up, gateway);
    loop_timer_set(gateway->tick_timer, CONNECTION_TICK_MS);
    loop_timer_set(gateway->heads.timer, gateway->options.head_check_ms);
    loop_timer_set(gateway->tokens.timer, gateway->options.token_check_ms);
    return 0;
}

int gateway_new(struct loop *loop, struct store *store, struct cache *cache,
                const struct gateway_options *options, struct gateway **ret_gateway)
{
    struct gateway *gateway = memory_must_new(sizeof *gateway);
    gateway->loop = loop;
    gateway->store = store;
    gateway->cache = cache;
    gateway->options = *options;
    gateway->heard_ms = loop_now_ms(loop);
    list_init(&gateway->connections);
    list_init(&gateway->dirty);
    list_init(&gateway->held);
    list_init(&gateway->opening_next);
    list_init(&gateway->holes.list);
    list_init(&gateway->envelopes.acked);
    list_init(&gateway->envelopes.acking);
    id_make('G', gateway->device);
    list_init(&gateway->focuses.due);
    list_init(&gateway->watching.due);
    int r = gateway_start(gateway);
    if (r < 0) {
        gateway_free(gateway);
        return r;
    }
    *ret_gateway = gateway;
    return 0;
}

void gateway_takeover(struct gateway *gateway, int fd, const char *head, size_t length)
{
    accept_connection(gateway, fd, head, length);
}

void gateway_drain(struct gateway *gateway)
{
    if (gateway->draining)
        return;
    gateway->draining = true;
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (c->state == CONNECTION_HEAD)
            connection_abort(c);
        else
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
    kept_end(gateway);
    struct stream *stream, *next;
    HASH_ITER(hh, gateway->streams, stream, next)
    {
        stream_free(stream);
    }
    loop_timer_free(gateway->tick_timer);
    loop_timer_free(gateway->heads.timer);
    loop_timer_free(gateway->holes.timer);
    loop_timer_free(gateway->members.timer);
    tokens_end(gateway);
    loop_timer_free(gateway->drain_timer);
    loop_timer_free(gateway->focuses.timer);
    loop_timer_free(gateway->watermark.timer);
    loop_timer_free(gateway->watching.timer);
    loop_timer_free(gateway->envelopes.timer);
    presence_free(gateway);
    watch_end(gateway);
    gateway_ask(gateway);
    (void)gateway_answer(gateway);
}
