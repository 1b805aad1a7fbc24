// SPDX-License-Identifier: Apache-2.0
// One channel's events on this gateway: sent in the order of seq, each once.
#include "feed.h"

#include "../core.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "events/event_type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct feed *feed_find(struct gateway *gateway, const char *channel_id)
{
    struct feed *feed;
    HASH_FIND_STR(gateway->feeds, channel_id, feed);
    return feed;
}

struct feed *feed_open(struct gateway *gateway, const char *workspace_id, const char *channel_id,
                       int64_t seq)
{
    struct feed *feed = feed_find(gateway, channel_id);
    if (feed)
        return feed;
    ASSERT(strlen(channel_id) < sizeof feed->channel_id);
    feed = calloc(1, sizeof *feed);
    if (!feed)
        return NULL;
    feed->gateway = gateway;
    feed->sent_seq = feed->known_seq = seq;
    feed->is_unconfirmed = true;
    feed->generation = -1;
    feed->empty_since_ms = loop_now_ms(gateway->loop);
    snprintf(feed->channel_id, sizeof feed->channel_id, "%s", channel_id);
    snprintf(feed->workspace_id, sizeof feed->workspace_id, "%s", workspace_id);
    list_init(&feed->held);
    list_init(&feed->held_marks);
    list_init(&feed->own_posts);
    list_init(&feed->focuses);
    list_init(&feed->gap_link);
    HASH_ADD_STR(gateway->feeds, channel_id, feed);
    gateway->feed_hooks->begin(feed);
    return feed;
}

static void held_free(struct feed *feed, struct list *link)
{
    struct held *held = LIST_ITEM(link, struct held, link);
    list_remove(link);
    ASSERT(feed->held_count > 0);
    feed->held_count--;
    feed->gateway->held_bytes -= (int64_t)held->event->frame_length;
    event_unref(held->event);
    free(held);
}

void feed_free(struct feed *feed)
{
    feed->gateway->feed_hooks->end(feed);
    LIST_FOREACH(link, &feed->held)
    {
        held_free(feed, link);
    }
    LIST_FOREACH(own, &feed->own_posts)
    {
        free(LIST_ITEM(own, struct own_post, link));
    }
    list_remove(&feed->gap_link);
    HASH_DEL(feed->gateway->feeds, feed);
    free(feed->subscribers);
    free(feed);
}

void feed_note_head(struct feed *feed, int64_t seq)
{
    if (feed->known_seq < seq)
        feed->known_seq = seq;
    if (feed->known_seq > feed->sent_seq)
        feed->gateway->feed_hooks->gap(feed);
}

// All up to `seq` was sent or skipped.
static void sent_note(struct feed *feed, int64_t seq)
{
    feed->sent_seq = seq;
    if (feed->known_seq < seq)
        feed->known_seq = seq;
    feed->gateway->feed_hooks->sent(feed);
}

void feed_rewind(struct feed *feed, int64_t seq)
{
    for (uint32_t i = 0; i < feed->subscriber_count; i++)
        if (feed->subscribers[i].from_seq < feed->sent_seq)
            feed->subscribers[i].from_seq = feed->sent_seq;
    if (feed->membership_seq < feed->sent_seq)
        feed->membership_seq = feed->sent_seq;
    feed->sent_seq = seq;
    feed->gap_asked = false; // a page in flight begins too late
    feed_note_head(feed, feed->known_seq);
    feed->gateway->feed_hooks->rewound(feed);
}

void feed_send(struct feed *feed, const struct feed_item *item)
{
    feed->gateway->feed_hooks->event(feed, item);
    feed->waiting_ms = loop_now_ms(feed->gateway->loop);
    if (feed->sent_ts > 0 && item->kind == EVENT_POST)
        feed->sent_ts = item->ts;
    sent_note(feed, item->seq);
}

static void event_send(struct feed *feed, const struct event *event)
{
    struct feed_item item = {.seq = event->seq,
                             .event_ts = event->event_ts,
                             .ts = event->ts,
                             .kind = event->kind,
                             .channel_type = (enum channel_type)event->channel_type,
                             .type = event_type_of(event),
                             .user_id = event->user_id,
                             .origin = event->origin,
                             .frame = event->frame,
                             .frame_length = event->frame_length};
    feed_send(feed, &item);
}

static bool may_hold(const struct feed *feed, const struct event *event)
{
    const struct gateway *gateway = feed->gateway;
    int64_t bytes = gateway->held_bytes + (int64_t)event->frame_length;
    if (feed->held_count < gateway->options.settings.gap_events_max &&
        bytes <= gateway->options.settings.gap_bytes)
        return true;
    metric_add(METRIC_HELD_FULL, 1);
    return false;
}

// Inserts the event by seq; most events belong at the end. Without room it is dropped, and read
// back later.
static void event_hold(struct feed *feed, struct event *event)
{
    struct list *after = feed->held.previous;
    while (after != &feed->held && LIST_ITEM(after, struct held, link)->event->seq > event->seq)
        after = after->previous;
    if (after != &feed->held && LIST_ITEM(after, struct held, link)->event->seq == event->seq) {
        metric_add(METRIC_FRAMES_DOUBLE, 1);
        return;
    }
    struct held *held = may_hold(feed, event) ? calloc(1, sizeof *held) : NULL;
    if (!held)
        return;
    held->event = event_ref(event);
    list_append(after->next, &held->link);
    feed->held_count++;
    feed->gateway->held_bytes += (int64_t)event->frame_length;
}

void feed_release(struct feed *feed)
{
    if (feed->members_unknown)
        return;
    LIST_FOREACH(link, &feed->held)
    {
        struct event *event = LIST_ITEM(link, struct held, link)->event;
        if (event->seq > feed->sent_seq + 1)
            return;
        if (event->seq == feed->sent_seq + 1)
            event_send(feed, event);
        held_free(feed, link);
    }
}

void feed_continue(struct feed *feed)
{
    if (!feed->members_unknown)
        return;
    feed->members_unknown = false;
    feed->waiting_ms = loop_now_ms(feed->gateway->loop);
    feed_release(feed);
    feed_note_head(feed, feed->known_seq);
}

void feed_offer(struct feed *feed, struct event *event)
{
    if (event->seq <= feed->sent_seq) {
        metric_add(METRIC_FRAMES_DOUBLE, 1);
    } else if (event->seq == feed->sent_seq + 1 && !feed->members_unknown) {
        event_send(feed, event);
        feed_release(feed);
    } else {
        event_hold(feed, event);
        feed_note_head(feed, event->seq);
    }
}

void feed_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out)
{
    struct json_writer w = json_writer_to(out);
    json_open_object(&w);
    json_key_string(&w, "type", "gap");
    json_key_string(&w, "channel", channel_id);
    json_key_int(&w, "from_seq", from_seq);
    json_key_int(&w, "to_seq", to_seq);
    json_close_object(&w);
}

void feed_suspend(struct feed *feed)
{
    feed->members_unknown = true;
    feed->gateway->feed_hooks->suspended(feed);
}

void feed_skip(struct feed *feed, int64_t to_seq)
{
    feed->gateway->feed_hooks->skipped(feed, to_seq);
    sent_note(feed, to_seq);
    if (feed->membership_seq < to_seq)
        feed->membership_seq = to_seq;
    feed_suspend(feed);
}
