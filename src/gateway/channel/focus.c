// SPDX-License-Identifier: Apache-2.0
// Channels that a client shows on screen: arriving messages are marked read, at most once a second
// per socket and channel, and always up to the last one. Earlier messages stay unread until a new
// one arrives.
//
// A device may be gone while its TCP connection still stands. So a message is marked only once the
// client has sent something after it was written to the socket; a ping sees to it that it does. And
// a focus ends with the read_epoch in which it began: after a markUnread it marks nothing more.
#include "focus.h"

#include "../connection/connection.h"
#include "../core.h"
#include "feed.h"

#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "unread/marker.h"

#include <stdlib.h>
#include <string.h>

enum { MARK_EVERY_MS = 1000, PING_EVERY_MS = 1000, TICK_MS = 50 };
enum { EPOCH_UNKNOWN = -1 };

static const struct statement EPOCH = {"gateway_focus_epoch",
                                       "SELECT m.epoch FROM channel_members m"
                                       " WHERE m.channel_id = $1 AND m.user_id = $2 AND m.active"};

struct focuses {
    struct list due; // focus sets
    struct loop_timer *timer;
};

struct focus {
    struct list link;     // in the feed's focuses
    struct list set_link; // in set->list
    struct feed *feed;
    struct focus_set *set;
    struct focus_read *read; // of its epoch, in progress; NULL: none
    struct focus_mark *mark; // in progress; NULL: none
    // The last message, other than the user's own, that … ; 0: none since the next stage.
    int64_t queued_ts;   // … was queued
    int64_t sent_ts;     // … was written to the socket
    int64_t answered_ts; // … the client has sent something after; not marked yet
    int64_t marked_ms;   // when the last mark was requested
    int64_t epoch;       // in which it began
};

// A mark in progress.
struct focus_mark {
    uint32_t tag;
    struct gateway *gateway;
    struct focus *focus; // NULL once it is gone
    struct mark mark;
    struct actor actor; // this and channel_id: what the mark borrows
    char channel_id[EVENT_ID_SIZE];
};

// The epoch being read for a focus that begins.
struct focus_read {
    uint32_t tag;
    struct gateway *gateway;
    struct focus *focus; // NULL once it is gone, or began again
    focus_fn *fn;
    void *arg;
};

static void set_advance(struct focus_set *set);

static void focus_free(struct focus *focus)
{
    if (focus->mark)
        focus->mark->focus = NULL;
    if (focus->read)
        focus->read->focus = NULL;
    list_remove(&focus->link);
    list_remove(&focus->set_link);
    focus->set->count--;
    if (focus->set->count == 0)
        list_remove(&focus->set->due_link);
    free(focus);
}

static void focus_forget_messages(struct focus *focus)
{
    focus->queued_ts = focus->sent_ts = focus->answered_ts = 0;
}

// The user's cursor is in `epoch` now. After a markUnread the focus is over, unless it is just
// beginning again.
static void focus_epoch_met(struct focus *focus, int64_t epoch)
{
    if (focus->epoch == EPOCH_UNKNOWN || epoch <= focus->epoch)
        return;
    focus->epoch = EPOCH_UNKNOWN;
    focus_forget_messages(focus);
    if (!focus->read)
        focus_free(focus);
}

static void on_marked(void *arg, int r, const struct unread_view *view)
{
    struct focus_mark *call = CAST(focus_mark, arg);
    struct focus *focus = call->focus;

    if (gateway_answer(call->gateway) && focus) {
        struct focus_set *set = focus->set;
        focus->mark = NULL;
        if ((r == -ERROR_UNAVAILABLE || r == -ERROR_BUSY) && focus->answered_ts < call->mark.ts)
            focus->answered_ts = call->mark.ts;
        if (r == 0)
            focus_epoch_met(focus, view->member.epoch);
        set_advance(set);
    }
    TAGGED_FREE(call);
}

static void focus_mark(struct focus *focus)
{
    struct gateway *gateway = focus->feed->gateway;
    struct focus_mark *call = TAGGED_NEW(focus_mark);

    focus->marked_ms = loop_now_ms(gateway->loop);
    if (!call)
        return; // retried when the next message arrives
    call->gateway = gateway;
    call->focus = focus;
    call->actor = focus->set->connection->actor;
    memcpy(call->channel_id, focus->feed->channel_id, sizeof call->channel_id);
    call->mark = (struct mark){.actor = &call->actor,
                               .channel_id = call->channel_id,
                               .ts = focus->answered_ts,
                               .epoch = focus->epoch,
                               .fn = on_marked,
                               .arg = call};
    if (marker_mark(gateway->options.marker, &call->mark) < 0) {
        TAGGED_FREE(call); // likewise
        return;
    }
    gateway_ask(gateway);
    focus->answered_ts = 0;
    focus->mark = call;
}

// Marks if it is time to. False: must wait for the rest of the second.
static bool focus_advance(struct focus *focus)
{
    if (focus->answered_ts == 0 || focus->mark || focus->epoch == EPOCH_UNKNOWN)
        return true;
    if (loop_now_ms(focus->feed->gateway->loop) < focus->marked_ms + MARK_EVERY_MS)
        return false;
    focus_mark(focus);
    return true;
}

// Sends a ping if it is time to. False: must wait for the rest of the second.
static bool set_ping(struct focus_set *set)
{
    struct connection *c = set->connection;
    int64_t now_ms = loop_now_ms(c->gateway->loop);

    if (!set->ping_due)
        return true;
    if (now_ms < set->pinged_ms + PING_EVERY_MS)
        return false;
    set->ping_due = false;
    set->pinged_ms = now_ms;
    c->ops->ping(c, now_ms);
    return true;
}

static void set_advance(struct focus_set *set)
{
    struct focuses *focuses = set->connection->gateway->focuses;
    bool waits = !set_ping(set);

    LIST_FOREACH(link, &set->list)
    {
        if (!focus_advance(LIST_ITEM(link, struct focus, set_link)))
            waits = true;
    }
    if (!waits || !list_is_empty(&set->due_link))
        return;
    if (list_is_empty(&focuses->due))
        loop_timer_set(focuses->timer, TICK_MS);
    list_append(&focuses->due, &set->due_link);
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    struct list due;

    list_init(&due);
    list_append_all(&due, &gateway->focuses->due);
    while (!list_is_empty(&due)) {
        struct focus_set *set = LIST_ITEM(due.next, struct focus_set, due_link);
        list_remove(&set->due_link);
        set_advance(set);
    }
}

void focus_set_init(struct focus_set *set, struct connection *c)
{
    *set = (struct focus_set){.connection = c, .pinged_ms = -PING_EVERY_MS};
    list_init(&set->list);
    list_init(&set->due_link);
}

void focus_set_flushed(struct focus_set *set)
{
    if (set->count == 0 || !outlet_is_empty(&set->connection->outlet))
        return;
    LIST_FOREACH(link, &set->list)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, set_link);
        if (focus->queued_ts == 0)
            continue;
        focus->sent_ts = focus->queued_ts;
        focus->queued_ts = 0;
        set->ping_due = true;
    }
    set_advance(set);
}

void focus_set_answered(struct focus_set *set)
{
    LIST_FOREACH(link, &set->list)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, set_link);
        if (focus->sent_ts == 0)
            continue;
        focus->answered_ts = focus->sent_ts;
        focus->sent_ts = 0;
    }
    if (set->count > 0)
        set_advance(set);
}

void focus_arrived(struct feed *feed, const struct feed_item *item)
{
    if (item->kind != EVENT_POST)
        return;
    LIST_FOREACH(link, &feed->focuses)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, link);
        if (strcmp(item->user_id, focus->set->connection->actor.user_id) != 0)
            focus->queued_ts = item->ts;
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
        if (strcmp(event->user_id, focus->set->connection->actor.user_id) == 0)
            focus_epoch_met(focus, event->member.epoch);
    }
}

static struct focus *focus_find(struct feed *feed, const struct connection *c)
{
    LIST_FOREACH(link, &feed->focuses)
    {
        struct focus *focus = LIST_ITEM(link, struct focus, link);
        if (focus->set->connection == c)
            return focus;
    }
    return NULL;
}

void focus_end(struct feed *feed, const struct connection *c)
{
    struct focus *focus = focus_find(feed, c);

    if (!focus)
        return;
    // Marks what was answered before the end, without waiting for the rest of its second.
    if (focus->answered_ts > 0 && focus->epoch != EPOCH_UNKNOWN && !feed->gateway->ended) {
        if (focus->mark)
            focus->mark->focus = NULL;
        focus_mark(focus);
    }
    focus_free(focus);
}

static void on_epoch(void *arg, const struct store_outcome *outcome)
{
    struct focus_read *read = CAST(focus_read, arg);
    struct focus *focus = read->focus;
    bool alive = gateway_answer(read->gateway);
    bool is_there = outcome->r == 0 && result_rows(outcome->result) > 0;

    if (focus)
        focus->read = NULL;
    if (alive && focus && is_there) {
        int64_t epoch = result_int(outcome->result, 0, 0);
        if (focus->epoch != EPOCH_UNKNOWN && epoch != focus->epoch)
            focus_forget_messages(focus);
        focus->epoch = epoch;
        set_advance(focus->set);
    } else if (alive && focus) {
        focus_free(focus);
    }
    read->fn(read->arg, outcome->r == 0 && !is_there ? -ERROR_CHANNEL_NOT_FOUND : outcome->r);
    TAGGED_FREE(read);
}

// Requests the epoch in which the focus begins. -ERROR_MEMORY.
static int epoch_ask(struct focus *focus, focus_fn *fn, void *arg)
{
    CLEANUP_PARAMS struct params params = {0};
    struct gateway *gateway = focus->feed->gateway;
    struct focus_read *read = TAGGED_NEW(focus_read);

    if (!read)
        return -ERROR_MEMORY;
    read->gateway = gateway;
    read->focus = focus;
    read->fn = fn;
    read->arg = arg;
    if (focus->read)
        focus->read->focus = NULL;
    focus->read = read;
    params_text(&params, focus->feed->channel_id);
    params_text(&params, focus->set->connection->actor.user_id);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_READ, &EPOCH, &params, on_epoch, read);
    return 0;
}

static struct focus *focus_new(struct feed *feed, struct focus_set *set)
{
    struct focus *focus = calloc(1, sizeof *focus);

    if (!focus)
        return NULL;
    focus->feed = feed;
    focus->set = set;
    focus->epoch = EPOCH_UNKNOWN;
    focus->marked_ms = loop_now_ms(feed->gateway->loop) - MARK_EVERY_MS;
    list_append(&feed->focuses, &focus->link);
    list_append(&set->list, &focus->set_link);
    set->count++;
    return focus;
}

int focus_begin(struct feed *feed, struct focus_set *set, focus_fn *fn, void *arg)
{
    struct connection *c = set->connection;
    struct focus *focus = focus_find(feed, c);

    if (!actor_has_scope(&c->actor, "channels:write"))
        return -ERROR_MISSING_SCOPE;
    if (!focus && set->count >= c->gateway->options.settings.socket_focus_max) {
        metric_add(METRIC_SOCKET_FOCUS, 1);
        return -ERROR_RATELIMITED;
    }
    if (!focus)
        focus = focus_new(feed, set);
    int r = focus ? epoch_ask(focus, fn, arg) : -ERROR_MEMORY;
    if (r < 0 && focus)
        focus_free(focus);
    return r;
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
