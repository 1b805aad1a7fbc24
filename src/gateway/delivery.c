// SPDX-License-Identifier: Apache-2.0
// What follows an event of a channel whose turn has come. All of it stands here, in the order in
// which it happens; the order matters.
#include "delivery.h"

#include "changed.h"
#include "core.h"
#include "focus.h"
#include "heads.h"
#include "held_marks.h"
#include "hole.h"
#include "members.h"
#include "seats.h"
#include "stream.h"
#include "watermark.h"

#include "unread/keys.h"

static void topic_follow(struct stream *stream, bool follow)
{
    char topic[KEY_SIZE];
    key_channel_topic(topic, stream->channel_id);
    gateway_follow(stream->gateway, topic, follow);
}

static void on_begin(struct stream *stream)
{
    topic_follow(stream, true);
    gateway_check_soon(stream->gateway); // what came before the topic was subscribed
}

static void on_event(struct stream *stream, const struct stream_item *item)
{
    if (item->kind == EVENT_JOIN)
        members_on_join(stream, item); // who comes gets the join, too
    seats_send(stream, item);
    focus_arrived(stream, item);
    if (item->kind == EVENT_LEAVE)
        members_on_leave(stream, item); // who goes got the leave
    if (item->kind == EVENT_DELETE || item->kind == EVENT_EDIT)
        changed_tell(stream, item->seq);
}

static void on_sent(struct stream *stream)
{
    seats_own_posts_trim(stream);
    marks_release(stream);
    if (stream->watermark_seq > 0 && stream->watermark_seq <= stream->sent_seq)
        watermark_passed(stream);
}

static void on_rewound(struct stream *stream)
{
    watermark_want(stream->gateway); // the one on its way took what is read again for sent
}

static void on_end(struct stream *stream)
{
    heads_forget(stream);
    marks_leave_stream(stream);
    if (stream->watermark_seq > 0)
        watermark_passed(stream);
    topic_follow(stream, false);
}

const struct stream_hooks delivery_hooks = {
    .begin = on_begin,
    .event = on_event,
    .gap = seats_send_gap,
    .sent = on_sent,
    .hole = hole_begin,
    .doubt = members_check,
    .rewound = on_rewound,
    .end = on_end,
};
