// SPDX-License-Identifier: Apache-2.0
// The effects of a channel's events, all in one place and in the order in which they happen. The
// order matters.
#include "delivery.h"

#include "channel/feed.h"
#include "channel/focus.h"
#include "channel/gap.h"
#include "channel/held_marks.h"
#include "channel/members.h"
#include "channel/subscribers.h"
#include "channel/tail_check.h"
#include "core.h"
#include "user/unread_frames.h"
#include "watermark.h"

#include "unread/keys.h"

static void topic_subscribe(struct feed *feed, bool subscribe)
{
    char topic[KEY_SIZE];
    key_channel_topic(topic, feed->channel_id);
    gateway_subscribe(feed->gateway, topic, subscribe);
}

static void on_begin(struct feed *feed)
{
    topic_subscribe(feed, true);
    gateway_check_soon(feed->gateway); // events from before the topic was subscribed
}

static void on_event(struct feed *feed, const struct feed_item *item)
{
    if (item->kind == EVENT_JOIN)
        members_on_join(feed, item); // the new member receives the join, too
    subscribers_send(feed, item);
    focus_arrived(feed, item);
    if (item->kind == EVENT_LEAVE)
        members_on_leave(feed, item); // the former member has received the leave
    if (item->kind == EVENT_DELETE || item->kind == EVENT_EDIT)
        unread_frames_after(feed, item->seq);
}

static void on_sent(struct feed *feed)
{
    subscribers_own_posts_trim(feed);
    held_marks_release(feed);
    if (feed->watermark_seq > 0 && feed->watermark_seq <= feed->sent_seq)
        watermark_passed(feed);
}

static void on_rewound(struct feed *feed)
{
    watermark_request(feed->gateway); // a query in progress counts the events to be re-read as sent
}

static void on_end(struct feed *feed)
{
    tail_check_forget(feed);
    held_marks_leave_feed(feed);
    if (feed->watermark_seq > 0)
        watermark_passed(feed);
    topic_subscribe(feed, false);
}

const struct feed_hooks delivery_hooks = {
    .begin = on_begin,
    .event = on_event,
    .skipped = subscribers_send_gap,
    .sent = on_sent,
    .gap = gap_begin,
    .suspended = members_check,
    .rewound = on_rewound,
    .end = on_end,
};
