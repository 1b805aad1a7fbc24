// SPDX-License-Identifier: Apache-2.0
// What tells that a user has read up to a message waits until the channel's stream has sent that
// message: marks travel on the user's topic, and may be faster. Of a user's marks in a channel only
// the newest is kept. A hole is read from Postgres within a bounded time; should the stream not get
// there even then, the mark goes without the message.
#include "held_marks.h"

#include "core.h"
#include "stream.h"
#include "users.h"

#include "base/error.h"
#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

struct held_mark {
    struct list stream_link; // in the stream's held_marks, by arrival
    struct list user_link;   // in the user's
    struct user *user;
    struct event *event;
    int64_t until_ms;
};

static bool is_sent(const struct stream *stream, const struct event *event)
{
    if (event->kind == EVENT_THREAD_MARK)
        return event->member.ts <= stream->sent_ts || stream->sent_ts == 0;
    return event->kind != EVENT_MARK || event->member.seq <= stream->sent_seq;
}

static void held_free(struct held_mark *held)
{
    list_remove(&held->stream_link);
    list_remove(&held->user_link);
    event_unref(held->event);
    free(held);
}

static void held_send(struct held_mark *held)
{
    user_send(held->user, held->event);
    held_free(held);
}

// Whether the two tell of the same channel or thread.
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

// Frees those that wait and that the event makes needless. False when one of them is newer. What is
// for all and what is for native sockets alone replace each other only across a markUnread.
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

static int mark_hold(struct stream *stream, struct user *user, struct event *event)
{
    struct gateway *gateway = stream->gateway;
    struct held_mark *held = calloc(1, sizeof *held);
    if (!held)
        return -ERROR_MEMORY;
    held->user = user;
    held->event = event_ref(event);
    held->until_ms = loop_now_ms(gateway->loop) + gateway->options.hole_timeout_ms;
    list_append(&stream->held_marks, &held->stream_link);
    list_append(&user->held_marks, &held->user_link);
    gateway->marks_held = true;
    if (event->kind == EVENT_MARK)
        stream_heard(stream, event->member.seq);
    metric_add(METRIC_MARKS_HELD, 1);
    return 0;
}

void mark_offer(struct gateway *gateway, struct user *user, struct event *event)
{
    struct stream *stream = stream_find(gateway, event->channel_id);
    if (!held_replace(user, event))
        return;
    if (!stream || is_sent(stream, event) || mark_hold(stream, user, event) < 0)
        user_send(user, event);
}

void marks_release(struct stream *stream)
{
    LIST_FOREACH(link, &stream->held_marks)
    {
        struct held_mark *held = LIST_ITEM(link, struct held_mark, stream_link);
        if (is_sent(stream, held->event))
            held_send(held);
    }
}

static void marks_expire(struct stream *stream, int64_t now_ms)
{
    LIST_FOREACH(link, &stream->held_marks)
    {
        struct held_mark *held = LIST_ITEM(link, struct held_mark, stream_link);
        if (held->until_ms <= now_ms)
            held_send(held);
    }
}

void marks_tend(struct gateway *gateway)
{
    if (!gateway->marks_held)
        return;
    gateway->marks_held = false;
    for (struct stream *stream = gateway->streams; stream; stream = stream->hh.next) {
        marks_expire(stream, loop_now_ms(gateway->loop));
        if (!list_is_empty(&stream->held_marks))
            gateway->marks_held = true;
    }
}

void marks_leave_stream(struct stream *stream)
{
    LIST_FOREACH(link, &stream->held_marks)
    {
        held_send(LIST_ITEM(link, struct held_mark, stream_link));
    }
}

void marks_leave_user(struct user *user)
{
    LIST_FOREACH(link, &user->held_marks)
    {
        held_free(LIST_ITEM(link, struct held_mark, user_link));
    }
}
