// SPDX-License-Identifier: Apache-2.0
// One channel's events on this gateway: sent in the order of seq, each once.
#include "stream.h"

#include "core.h"

#include "base/buffer.h"
#include "base/json_writer.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream *stream_find(struct gateway *gateway, const char *channel_id)
{
    struct stream *stream;
    HASH_FIND_STR(gateway->streams, channel_id, stream);
    return stream;
}

struct stream *stream_follow(struct gateway *gateway, const char *workspace_id,
                             const char *channel_id, int64_t seq)
{
    struct stream *stream = stream_find(gateway, channel_id);
    if (stream)
        return stream;
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->gateway = gateway;
    stream->sent_seq = stream->known_seq = seq;
    stream->is_young = true;
    stream->generation = -1;
    stream->empty_since_ms = loop_now_ms(gateway->loop);
    snprintf(stream->channel_id, sizeof stream->channel_id, "%s", channel_id);
    snprintf(stream->workspace_id, sizeof stream->workspace_id, "%s", workspace_id);
    list_init(&stream->held);
    list_init(&stream->held_marks);
    list_init(&stream->own_posts);
    list_init(&stream->focuses);
    list_init(&stream->hole_link);
    HASH_ADD_STR(gateway->streams, channel_id, stream);
    gateway->stream_hooks->begin(stream);
    return stream;
}

static void held_free(struct stream *stream, struct list *link)
{
    struct held *held = LIST_ITEM(link, struct held, link);
    list_remove(link);
    stream->held_count--;
    stream->gateway->held_bytes -= (int64_t)held->event->frame_length;
    event_unref(held->event);
    free(held);
}

void stream_free(struct stream *stream)
{
    stream->gateway->stream_hooks->end(stream);
    LIST_FOREACH(link, &stream->held)
    {
        held_free(stream, link);
    }
    LIST_FOREACH(own, &stream->own_posts)
    {
        free(LIST_ITEM(own, struct own_post, link));
    }
    list_remove(&stream->hole_link);
    HASH_DEL(stream->gateway->streams, stream);
    free(stream->seats);
    free(stream);
}

void stream_heard(struct stream *stream, int64_t seq)
{
    if (stream->known_seq < seq)
        stream->known_seq = seq;
    if (stream->known_seq > stream->sent_seq)
        stream->gateway->stream_hooks->hole(stream);
}

// All up to `seq` was sent, or told of as a gap.
static void sent_note(struct stream *stream, int64_t seq)
{
    stream->sent_seq = seq;
    if (stream->known_seq < seq)
        stream->known_seq = seq;
    stream->gateway->stream_hooks->sent(stream);
}

void stream_rewind(struct stream *stream, int64_t seq)
{
    for (uint32_t i = 0; i < stream->seat_count; i++)
        if (stream->seats[i].from_seq < stream->sent_seq)
            stream->seats[i].from_seq = stream->sent_seq;
    if (stream->membership_seq < stream->sent_seq)
        stream->membership_seq = stream->sent_seq;
    stream->sent_seq = seq;
    stream->hole_asked = false; // a page that is on its way begins too late
    stream_heard(stream, stream->known_seq);
    stream->gateway->stream_hooks->rewound(stream);
}

void stream_send(struct stream *stream, const struct stream_item *item)
{
    stream->gateway->stream_hooks->event(stream, item);
    stream->waiting_ms = loop_now_ms(stream->gateway->loop);
    if (stream->sent_ts > 0 && item->kind == EVENT_POST)
        stream->sent_ts = item->ts;
    sent_note(stream, item->seq);
}

static void event_send(struct stream *stream, const struct event *event)
{
    struct stream_item item = {.seq = event->seq,
                               .event_ts = event->event_ts,
                               .ts = event->ts,
                               .kind = event->kind,
                               .channel_type = (enum channel_type)event->channel_type,
                               .user_id = event->user_id,
                               .origin = event->origin,
                               .frame = event->frame,
                               .frame_length = event->frame_length};
    stream_send(stream, &item);
}

static bool may_hold(const struct stream *stream, const struct event *event)
{
    const struct gateway *gateway = stream->gateway;
    int64_t bytes = gateway->held_bytes + (int64_t)event->frame_length;
    if (stream->held_count < gateway->options.hole_events_max &&
        bytes <= gateway->options.hole_bytes)
        return true;
    metric_add(METRIC_HELD_FULL, 1);
    return false;
}

// Holds the event in its place by seq, most likely the last. What there is no room for is read back
// later.
static void event_hold(struct stream *stream, struct event *event)
{
    struct list *after = stream->held.previous;
    while (after != &stream->held && LIST_ITEM(after, struct held, link)->event->seq > event->seq)
        after = after->previous;
    if (after != &stream->held && LIST_ITEM(after, struct held, link)->event->seq == event->seq) {
        metric_add(METRIC_FRAMES_DOUBLE, 1);
        return;
    }
    struct held *held = may_hold(stream, event) ? calloc(1, sizeof *held) : NULL;
    if (!held)
        return;
    held->event = event_ref(event);
    list_append(after->next, &held->link);
    stream->held_count++;
    stream->gateway->held_bytes += (int64_t)event->frame_length;
}

void stream_release(struct stream *stream)
{
    if (stream->members_unknown)
        return;
    LIST_FOREACH(link, &stream->held)
    {
        struct event *event = LIST_ITEM(link, struct held, link)->event;
        if (event->seq > stream->sent_seq + 1)
            return;
        if (event->seq == stream->sent_seq + 1)
            event_send(stream, event);
        held_free(stream, link);
    }
}

void stream_go_on(struct stream *stream)
{
    if (!stream->members_unknown)
        return;
    stream->members_unknown = false;
    stream->waiting_ms = loop_now_ms(stream->gateway->loop);
    stream_release(stream);
    stream_heard(stream, stream->known_seq);
}

void stream_offer(struct stream *stream, struct event *event)
{
    if (event->seq <= stream->sent_seq) {
        metric_add(METRIC_FRAMES_DOUBLE, 1);
    } else if (event->seq == stream->sent_seq + 1 && !stream->members_unknown) {
        event_send(stream, event);
        stream_release(stream);
    } else {
        event_hold(stream, event);
        stream_heard(stream, event->seq);
    }
}

void stream_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out)
{
    struct json_writer w = json_writer_to(out);
    json_open_object(&w);
    json_key_string(&w, "type", "gap");
    json_key_string(&w, "channel", channel_id);
    json_key_int(&w, "from_seq", from_seq);
    json_key_int(&w, "to_seq", to_seq);
    json_close_object(&w);
}

void stream_doubt(struct stream *stream)
{
    stream->members_unknown = true;
    stream->gateway->stream_hooks->doubt(stream);
}

void stream_skip(struct stream *stream, int64_t to_seq)
{
    stream->gateway->stream_hooks->gap(stream, to_seq);
    sent_note(stream, to_seq);
    if (stream->membership_seq < to_seq)
        stream->membership_seq = to_seq;
    stream_doubt(stream);
}
