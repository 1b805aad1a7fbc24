// SPDX-License-Identifier: Apache-2.0
// The subscribers of a feed: each connection of a member receives the events after it subscribed. A
// socket does not receive its own posts, since they were acked to it.
#include "subscribers.h"

#include "../connection/connection.h"
#include "../connection/packet.h"
#include "../core.h"
#include "../user/users.h"
#include "feed.h"
#include "focus.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBSCRIBERS_FIRST = 2, GAP_MAX = 256 };

bool subscribers_have(const struct feed *feed, const struct connection *c)
{
    for (uint32_t i = 0; i < feed->subscriber_count; i++)
        if (feed->subscribers[i].connection == c)
            return true;
    return false;
}

bool subscribers_have_user(const struct feed *feed, const struct user *user)
{
    LIST_FOREACH(link, &user->connections)
    {
        if (!subscribers_have(feed, LIST_ITEM(link, struct connection, user_link)))
            return false;
    }
    return true;
}

static int subscribers_grow(struct feed *feed)
{
    if (feed->subscriber_count < feed->subscriber_capacity)
        return 0;
    uint32_t capacity =
        feed->subscriber_capacity ? 2 * feed->subscriber_capacity : SUBSCRIBERS_FIRST;
    void *subscribers = reallocarray(feed->subscribers, capacity, sizeof *feed->subscribers);
    if (!subscribers)
        return -ERROR_MEMORY;
    feed->subscribers = subscribers;
    feed->subscriber_capacity = capacity;
    return 0;
}

static int subscriptions_grow(struct connection *c)
{
    if (c->subscription_count < c->subscription_capacity)
        return 0;
    uint32_t capacity = c->subscription_capacity ? 2 * c->subscription_capacity : SUBSCRIBERS_FIRST;
    void *subscriptions = reallocarray(c->subscriptions, capacity, sizeof *c->subscriptions);
    if (!subscriptions)
        return -ERROR_MEMORY;
    c->subscriptions = subscriptions;
    c->subscription_capacity = capacity;
    return 0;
}

int subscribers_add(struct feed *feed, struct connection *c, int64_t from_seq)
{
    if (subscribers_grow(feed) < 0 || subscriptions_grow(c) < 0)
        return -ERROR_MEMORY;
    feed->empty_since_ms = 0;
    feed->resumable_count += c->is_resumable;
    feed->subscribers[feed->subscriber_count] =
        (struct feed_subscriber){c, c->subscription_count, from_seq};
    c->subscriptions[c->subscription_count++] =
        (struct subscription){feed, feed->subscriber_count++};
    return 0;
}

int subscribers_enter(struct feed *feed, struct connection *c, int64_t seq, int64_t from_seq)
{
    int r = subscribers_add(feed, c, from_seq);
    // A leave sent after the snapshot may have been this user's, who was not subscribed yet.
    if (r >= 0 && feed->membership_seq > seq)
        feed_suspend(feed);
    feed_note_head(feed, seq);
    return r;
}

bool subscribers_add_user(struct feed *feed, struct user *user, int64_t from_seq)
{
    bool any = false;
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (subscribers_have(feed, c))
            continue;
        any = true;
        bool waits = c->ops->joins && c->ops->joins(c, feed);
        if (subscribers_add(feed, c, waits ? INT64_MAX : from_seq) < 0)
            connection_close(c, CLOSE_POLICY, "no memory");
    }
    return any;
}

// Fills the free slots with the feed's last subscriber and the connection's last subscription.
static void subscriber_remove(struct feed *feed, uint32_t index)
{
    struct connection *c = feed->subscribers[index].connection;
    focus_end(feed, c);
    uint32_t subscription = feed->subscribers[index].subscription;
    ASSERT(index < feed->subscriber_count && subscription < c->subscription_count);
    feed->resumable_count -= c->is_resumable;
    feed->subscribers[index] = feed->subscribers[--feed->subscriber_count];
    if (index < feed->subscriber_count) {
        const struct feed_subscriber *moved = &feed->subscribers[index];
        moved->connection->subscriptions[moved->subscription].subscriber = index;
    }
    c->subscriptions[subscription] = c->subscriptions[--c->subscription_count];
    if (subscription < c->subscription_count) {
        const struct subscription *moved = &c->subscriptions[subscription];
        moved->feed->subscribers[moved->subscriber].subscription = subscription;
    }
    if (feed->subscriber_count == 0)
        feed->empty_since_ms = loop_now_ms(feed->gateway->loop);
}

void subscribers_remove_user(struct feed *feed, const struct user *user, int64_t seq)
{
    for (uint32_t i = feed->subscriber_count; i > 0; i--) {
        const struct feed_subscriber *subscriber = &feed->subscribers[i - 1];
        if (subscriber->connection->user == user &&
            (subscriber->from_seq < seq || subscriber->from_seq == INT64_MAX))
            subscriber_remove(feed, i - 1);
    }
}

void subscribers_leave(struct connection *c)
{
    while (c->subscription_count > 0) {
        const struct subscription *subscription = &c->subscriptions[c->subscription_count - 1];
        subscriber_remove(subscription->feed, subscription->subscriber);
    }
}

// The socket on which the event was posted, and acked. An event read back from Postgres has no
// origin, so the ack has recorded it in own_posts.
static const char *origin_find(struct feed *feed, const struct feed_item *item)
{
    LIST_FOREACH(link, &feed->own_posts)
    {
        const struct own_post *own = LIST_ITEM(link, struct own_post, link);
        if (own->seq == item->seq)
            return own->origin;
    }
    return item->origin;
}

void subscribers_own_posts_trim(struct feed *feed)
{
    LIST_FOREACH(link, &feed->own_posts)
    {
        struct own_post *own = LIST_ITEM(link, struct own_post, link);
        if (own->seq > feed->sent_seq)
            continue;
        list_remove(link);
        free(own);
    }
}

void subscribers_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
                          const char *origin)
{
    struct feed *feed = feed_find(gateway, channel_id);
    if (!feed || seq <= feed->sent_seq)
        return;
    struct own_post *own = calloc(1, sizeof *own);
    if (!own)
        return;
    own->seq = seq;
    snprintf(own->origin, sizeof own->origin, "%s", origin);
    list_append(&feed->own_posts, &own->link);
}

void subscribers_send(struct feed *feed, const struct feed_item *item)
{
    CLEANUP(packets_done)
    struct packets packets = packets_of(item->type, item->frame, item->frame_length);
    packets.event_us = item->event_ts;
    const char *origin = origin_find(feed, item);
    int64_t sent = 0;
    for (uint32_t i = 0; i < feed->subscriber_count; i++) {
        const struct feed_subscriber *subscriber = &feed->subscribers[i];
        struct connection *c = subscriber->connection;
        if (item->seq <= subscriber->from_seq || (origin[0] && strcmp(c->id, origin) == 0))
            continue;
        c->ops->deliver(c, feed, item, &packets);
        sent++;
    }
    metric_add(METRIC_FRAMES_SENT, sent);
}

static void gap_send(const struct feed_subscriber *subscriber, int64_t to_seq,
                     struct packets *packets)
{
    struct connection *c = subscriber->connection;
    if (subscriber->from_seq < to_seq && c->ops->gap)
        c->ops->gap(c, packets);
}

void subscribers_send_gap(struct feed *feed, int64_t to_seq)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(GAP_MAX);
    feed_gap_write(feed->channel_id, feed->sent_seq + 1, to_seq, &out);
    CLEANUP(packets_done) struct packets packets = packets_of("gap", out.data, out.length);
    for (uint32_t i = 0; !buffer_failed(&out) && i < feed->subscriber_count; i++)
        gap_send(&feed->subscribers[i], to_seq, &packets);
    metric_add(METRIC_GAPS_TOLD, 1);
}
