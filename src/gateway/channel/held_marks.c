// SPDX-License-Identifier: Apache-2.0
// Marks arrive on the user's topic, and may overtake the messages, which arrive on the channel's. A
// mark waits until the channel's feed has sent the message that it refers to. Of a user's marks in
// a channel only the newest is held. Gaps are filled within a bounded time; if the feed has not
// sent the message by then, the mark is sent without it.
#include "held_marks.h"

#include "../core.h"
#include "../user/users.h"
#include "feed.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

struct held_mark {
    struct list feed_link; // in the feed's held_marks, by arrival
    struct list user_link; // in the user's held_marks
    struct user *user;
    struct event *event;
    int64_t until_ms;
};

static bool is_sent(const struct feed *feed, const struct event *event)
{
    if (event->kind == EVENT_THREAD_MARK)
        return event->member.ts <= feed->sent_ts || feed->sent_ts == 0;
    return event->kind != EVENT_MARK || event->member.seq <= feed->sent_seq;
}

static void held_free(struct held_mark *held)
{
    list_remove(&held->feed_link);
    list_remove(&held->user_link);
    event_unref(held->event);
    free(held);
}

static void held_send(struct held_mark *held)
{
    user_send(held->user, held->event);
    held_free(held);
}

// Whether both are about the same channel or thread.
static bool is_alike(const struct event *one, const struct event *other)
{
    return one->kind == other->kind && strcmp(one->channel_id, other->channel_id) == 0 &&
           (one->kind == EVENT_MARK || one->ts == other->ts);
}

static bool is_older(const struct event *one, const struct event *other)
{
    if (one->member.epoch != other->member.epoch)
        return one->member.epoch < other->member.epoch;
    return one->member.ts < other->member.ts;
}

// Frees held marks that the event supersedes. False: a held one is newer. Events for all sockets
// and events for native sockets supersede each other only across a markUnread.
static bool held_replace(struct user *user, const struct event *event)
{
    LIST_FOREACH(link, &user->held_marks)
    {
        struct held_mark *held = LIST_ITEM(link, struct held_mark, user_link);
        bool same = event_is_for_all(held->event) == event_is_for_all(event);
        if (!is_alike(held->event, event))
            continue;
        if (same && is_older(event, held->event))
            return false;
        if (same || held->event->member.epoch < event->member.epoch)
            held_free(held);
    }
    return true;
}

static int mark_hold(struct feed *feed, struct user *user, struct event *event)
{
    struct gateway *gateway = feed->gateway;
    struct held_mark *held = calloc(1, sizeof *held);
    if (!held)
        return -ERROR_MEMORY;
    held->user = user;
    held->event = event_ref(event);
    held->until_ms = loop_now_ms(gateway->loop) + gateway->options.settings.gap_timeout_ms;
    list_append(&feed->held_marks, &held->feed_link);
    list_append(&user->held_marks, &held->user_link);
    gateway->has_held_marks = true;
    if (event->kind == EVENT_MARK)
        feed_note_head(feed, event->member.seq);
    metric_add(METRIC_MARKS_HELD, 1);
    return 0;
}

void held_marks_offer(struct gateway *gateway, struct user *user, struct event *event)
{
    struct feed *feed = feed_find(gateway, event->channel_id);
    if (!held_replace(user, event))
        return;
    if (!feed || is_sent(feed, event) || mark_hold(feed, user, event) < 0)
        user_send(user, event);
}

void held_marks_offer_view(struct gateway *gateway, enum unread_frame type,
                           const struct unread_view *view)
{
    struct user *user = user_find(gateway, view->user_id);
    struct event *event = user ? unread_mark_event(type, view, clock_wall_us()) : NULL;

    if (event)
        held_marks_offer(gateway, user, event);
    event_unref(event);
}

void held_marks_release(struct feed *feed)
{
    LIST_FOREACH(link, &feed->held_marks)
    {
        struct held_mark *held = LIST_ITEM(link, struct held_mark, feed_link);
        if (is_sent(feed, held->event))
            held_send(held);
    }
}

static void marks_expire(struct feed *feed, int64_t now_ms)
{
    LIST_FOREACH(link, &feed->held_marks)
    {
        struct held_mark *held = LIST_ITEM(link, struct held_mark, feed_link);
        if (held->until_ms <= now_ms)
            held_send(held);
    }
}

void held_marks_tick(struct gateway *gateway)
{
    if (!gateway->has_held_marks)
        return;
    gateway->has_held_marks = false;
    for (struct feed *feed = gateway->feeds; feed; feed = feed->hh.next) {
        marks_expire(feed, loop_now_ms(gateway->loop));
        if (!list_is_empty(&feed->held_marks))
            gateway->has_held_marks = true;
    }
}

void held_marks_leave_feed(struct feed *feed)
{
    LIST_FOREACH(link, &feed->held_marks)
    {
        held_send(LIST_ITEM(link, struct held_mark, feed_link));
    }
}

void held_marks_leave_user(struct user *user)
{
    LIST_FOREACH(link, &user->held_marks)
    {
        held_free(LIST_ITEM(link, struct held_mark, user_link));
    }
}
