// SPDX-License-Identifier: Apache-2.0
// Channels that a client shows on screen: arriving messages are marked read, at most once a second
// per socket and channel, and always up to the last one. Earlier messages stay unread until a new
// one arrives. So do, after a markUnread, messages that had arrived but were not marked yet.
#include "focus.h"

#include "../connection/connection.h"
#include "../core.h"
#include "feed.h"

#include "base/check.h"
#include "base/error.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "http/internal_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_EVERY_MS = 1000, TICK_MS = 50 };

struct focuses {
    struct list due;
    struct loop_timer *timer;
};

struct focus {
    struct list link;     // in the feed's focuses
    struct list due_link; // in focuses->due while it waits for its next mark
    struct feed *feed;
    struct connection *connection;
    int *count;              // of the connection's focuses
    struct focus_call *call; // the mark in progress; NULL: none
    int64_t ts;              // of the last message that arrived and is not marked; 0: none
    int64_t marked_ms;       // when the last mark was requested
    int64_t epoch;           // the highest known; -1: none
};

// A mark in progress.
struct focus_call {
    uint32_t tag;
    struct gateway *gateway;
    struct focus *focus; // NULL once it is gone
    int64_t ts;
    char channel_id[EVENT_ID_SIZE]; // this and ts_text: the arguments, which the request borrows
    char ts_text[TS_SIZE];
};

static void focus_advance(struct focus *focus);

static bool is_passing(const char *error)
{
    return strcmp(error, error_code(ERROR_UNAVAILABLE)) == 0 ||
           strcmp(error, error_code(ERROR_BUSY)) == 0 ||
           strcmp(error, error_code(ERROR_RATELIMITED)) == 0;
}

static void on_marked(void *arg, const struct request_outcome *outcome)
{
    struct focus_call *call = CAST(focus_call, arg);
    struct focus *focus = call->focus;

    if (gateway_answer(call->gateway) && focus) {
        focus->call = NULL;
        if (is_passing(outcome->error) && focus->ts < call->ts)
            focus->ts = call->ts;
        focus_advance(focus);
    }
    TAGGED_FREE(call);
}

// A call of channels.mark; NULL: out of memory.
static struct request *mark_new(struct focus_call *call)
{
    struct request *request = NULL;

    ts_print(call->ts, call->ts_text);
    if (request_new("channels.mark", NULL, on_marked, call, &request) < 0)
        return NULL;
    if (request_arg_set(request, "channel", call->channel_id) < 0 ||
        request_arg_set(request, "ts", call->ts_text) < 0) {
        request_drop(request);
        return NULL;
    }
    *request_actor(request) = call->focus->connection->actor;
    request_actor(request)->token_id[0] = '\0'; // not the client's call: exempt from its rate limit
    return request;
}

static void focus_mark(struct focus *focus)
{
    struct gateway *gateway = focus->feed->gateway;
    struct focus_call *call = TAGGED_NEW(focus_call);

    focus->marked_ms = loop_now_ms(gateway->loop);
    if (!call)
        return; // retried when the next message arrives
    call->gateway = gateway;
    call->focus = focus;
    call->ts = focus->ts;
    memcpy(call->channel_id, focus->feed->channel_id, sizeof call->channel_id);
    struct request *request = mark_new(call);
    if (!request) {
        TAGGED_FREE(call);
        return;
    }
    focus->ts = 0;
    focus->call = call;
    gateway_ask(gateway);
    gateway->options.on_call(gateway->options.arg, request);
}

static void focus_advance(struct focus *focus)
{
    struct gateway *gateway = focus->feed->gateway;

    if (focus->ts == 0 || focus->call || !list_is_empty(&focus->due_link))
        return;
    if (loop_now_ms(gateway->loop) >= focus->marked_ms + MARK_EVERY_MS) {
        focus_mark(focus);
        return;
    }
    if (list_is_empty(&gateway->focuses->due))
        loop_timer_set(gateway->focuses->timer, TICK_MS);
    list_append(&gateway->focuses->due, &focus->due_link);
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    struct list due;

    list_init(&due);
    list_append_all(&due, &gateway->focuses->due);
    while (!list_is_empty(&due)) {
        struct focus *focus = LIST_ITEM(due.next, struct focus, due_link);
        list_remove(&focus->due_link);
        focus_advance(focus);
    }
}

void focus_arrived(struct feed *feed, const struct feed_item *item)
{
    if (item->kind != EVENT_POST)
        return;
    LIST_FOREACH(link, &feed->focuses)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, link);
        if (strcmp(item->user_id, focus->connection->actor.user_id) == 0)
            continue;
        focus->ts = item->ts;
        focus_advance(focus);
    }
}

void focus_cursor_moved(struct gateway *gateway, const struct event *event)
{
    struct feed *feed = feed_find(gateway, event->channel_id);

    if (!feed)
        return;
    LIST_FOREACH(link, &feed->focuses)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, link);
        if (event->member.epoch <= focus->epoch ||
            strcmp(event->user_id, focus->connection->actor.user_id) != 0)
            continue;
        if (focus->epoch >= 0 && focus->ts <= event->event_ts)
            focus->ts = 0;
        focus->epoch = event->member.epoch;
    }
}

static struct focus *focus_find(struct feed *feed, const struct connection *c)
{
    LIST_FOREACH(link, &feed->focuses)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, link);
        if (focus->connection == c)
            return focus;
    }
    return NULL;
}

void focus_end(struct feed *feed, const struct connection *c)
{
    struct focus *focus = focus_find(feed, c);

    if (!focus)
        return;
    // Marks what arrived before the end, without waiting for the rest of its second.
    if (focus->ts > 0 && !feed->gateway->ended) {
        if (focus->call)
            focus->call->focus = NULL;
        focus_mark(focus);
    }
    if (focus->call)
        focus->call->focus = NULL;
    list_remove(&focus->link);
    list_remove(&focus->due_link);
    (*focus->count)--;
    free(focus);
}

int focus_begin(struct feed *feed, struct connection *c, int *count)
{
    if (focus_find(feed, c))
        return 0;
    if (*count >= c->gateway->options.settings.socket_focus_max) {
        metric_add(METRIC_SOCKET_FOCUS, 1);
        return -ERROR_RATELIMITED;
    }
    struct focus *focus = calloc(1, sizeof *focus);
    if (!focus)
        return -ERROR_MEMORY;
    focus->feed = feed;
    focus->connection = c;
    focus->count = count;
    focus->epoch = -1;
    focus->marked_ms = loop_now_ms(c->gateway->loop) - MARK_EVERY_MS;
    list_init(&focus->due_link);
    list_append(&feed->focuses, &focus->link);
    (*count)++;
    return 0;
}

int focuses_new(struct gateway *gateway)
{
    gateway->focuses = memory_must_new(sizeof *gateway->focuses);
    list_init(&gateway->focuses->due);
    return loop_timer_new(gateway->loop, on_timer, gateway, &gateway->focuses->timer);
}

void focuses_free(struct gateway *gateway)
{
    if (!gateway->focuses)
        return;
    loop_timer_free(gateway->focuses->timer);
    free(TAKE(gateway->focuses));
}
