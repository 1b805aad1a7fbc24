// SPDX-License-Identifier: Apache-2.0
// One channel's events on this gateway: sent in the order of seq, each once, to all who sit here.
#include "stream.h"

#include "changed.h"
#include "connection.h"
#include "core.h"
#include "focus.h"
#include "heads.h"
#include "held_marks.h"
#include "hole.h"
#include "joined.h"
#include "members.h"
#include "packet.h"
#include "people.h"
#include "watermark.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "unread/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEATS_FIRST = 2, GAP_MAX = 256 };

static void channel_follow(struct stream *stream, bool follow)
{
    char topic[KEY_SIZE];
    key_channel_topic(topic, stream->channel_id);
    topic_follow(stream->gateway, topic, follow);
}

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
    channel_follow(stream, true);
    members_young(gateway);
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
    heads_forget(stream);
    marks_leave_stream(stream);
    if (stream->watermark_seq > 0)
        watermark_passed(stream);
    channel_follow(stream, false);
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

bool stream_has(const struct stream *stream, const struct connection *c)
{
    for (uint32_t i = 0; i < stream->seat_count; i++)
        if (stream->seats[i].connection == c)
            return true;
    return false;
}

bool stream_has_user(const struct stream *stream, const struct user *user)
{
    LIST_FOREACH(link, &user->connections)
    {
        if (!stream_has(stream, LIST_ITEM(link, struct connection, user_link)))
            return false;
    }
    return true;
}

static int seats_grow(struct stream *stream)
{
    if (stream->seat_count < stream->seat_capacity)
        return 0;
    uint32_t capacity = stream->seat_capacity ? 2 * stream->seat_capacity : SEATS_FIRST;
    void *seats = reallocarray(stream->seats, capacity, sizeof *stream->seats);
    if (!seats)
        return -ERROR_MEMORY;
    stream->seats = seats;
    stream->seat_capacity = capacity;
    return 0;
}

static int follows_grow(struct connection *c)
{
    if (c->follow_count < c->follow_capacity)
        return 0;
    uint32_t capacity = c->follow_capacity ? 2 * c->follow_capacity : SEATS_FIRST;
    void *follows = reallocarray(c->follows, capacity, sizeof *c->follows);
    if (!follows)
        return -ERROR_MEMORY;
    c->follows = follows;
    c->follow_capacity = capacity;
    return 0;
}

int stream_seat(struct stream *stream, struct connection *c, int64_t from_seq)
{
    if (seats_grow(stream) < 0 || follows_grow(c) < 0)
        return -ERROR_MEMORY;
    stream->empty_since_ms = 0;
    stream->sse_count += c->ops->is_resumable;
    stream->seats[stream->seat_count] = (struct seat){c, c->follow_count, from_seq};
    c->follows[c->follow_count++] = (struct follow){stream, stream->seat_count++};
    return 0;
}

int stream_enter(struct stream *stream, struct connection *c, int64_t seq, int64_t from_seq)
{
    int r = stream_seat(stream, c, from_seq);
    // The leave that was sent may have been this user's, who did not sit here yet.
    if (r >= 0 && stream->membership_seq > seq)
        members_doubt(stream);
    hole_heard(stream, seq);
    return r;
}

void stream_seat_user(struct stream *stream, struct user *user, int64_t from_seq)
{
    bool any = false;
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (stream_has(stream, c))
            continue;
        any = true;
        bool waits = c->ops->joins && c->ops->joins(c, stream);
        if (stream_seat(stream, c, waits ? INT64_MAX : from_seq) < 0)
            connection_doom(c, CLOSE_POLICY, "no memory");
    }
    if (any)
        joined_tell(stream, user);
}

// The last seat and the last follow move into the places that become free.
static void seat_remove(struct stream *stream, uint32_t index)
{
    struct connection *c = stream->seats[index].connection;
    focus_end(stream, c);
    uint32_t follow = stream->seats[index].follow;
    stream->sse_count -= c->ops->is_resumable;
    stream->seats[index] = stream->seats[--stream->seat_count];
    if (index < stream->seat_count) {
        const struct seat *moved = &stream->seats[index];
        moved->connection->follows[moved->follow].seat = index;
    }
    c->follows[follow] = c->follows[--c->follow_count];
    if (follow < c->follow_count) {
        const struct follow *moved = &c->follows[follow];
        moved->stream->seats[moved->seat].follow = follow;
    }
    if (stream->seat_count == 0)
        stream->empty_since_ms = loop_now_ms(stream->gateway->loop);
}

void stream_unseat_user(struct stream *stream, const struct user *user, int64_t seq)
{
    for (uint32_t i = stream->seat_count; i > 0; i--) {
        const struct seat *seat = &stream->seats[i - 1];
        if (seat->connection->user == user && (seat->from_seq < seq || seat->from_seq == INT64_MAX))
            seat_remove(stream, i - 1);
    }
}

void stream_unseat_all(struct connection *c)
{
    while (c->follow_count > 0) {
        const struct follow *follow = &c->follows[c->follow_count - 1];
        seat_remove(follow->stream, follow->seat);
    }
}

// The socket that the event was posted on: it has its ack. When the event was read back from
// Postgres, the ack told.
static const char *origin_find(struct stream *stream, const struct stream_item *item)
{
    LIST_FOREACH(link, &stream->own_posts)
    {
        const struct own_post *own = LIST_ITEM(link, struct own_post, link);
        if (own->seq == item->seq)
            return own->origin;
    }
    return item->origin;
}

static void own_posts_trim(struct stream *stream)
{
    LIST_FOREACH(link, &stream->own_posts)
    {
        struct own_post *own = LIST_ITEM(link, struct own_post, link);
        if (own->seq > stream->sent_seq)
            continue;
        list_remove(link);
        free(own);
    }
}

void stream_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
                     const char *origin)
{
    struct stream *stream = stream_find(gateway, channel_id);
    if (!stream || seq <= stream->sent_seq)
        return;
    struct own_post *own = calloc(1, sizeof *own);
    if (!own)
        return;
    own->seq = seq;
    snprintf(own->origin, sizeof own->origin, "%s", origin);
    list_append(&stream->own_posts, &own->link);
}

static void seats_send(struct stream *stream, const struct stream_item *item)
{
    CLEANUP(packets_done) struct packets packets = packets_of(item->frame, item->frame_length);
    packets.event_us = item->event_ts;
    const char *origin = origin_find(stream, item);
    int64_t sent = 0;
    for (uint32_t i = 0; i < stream->seat_count; i++) {
        const struct seat *seat = &stream->seats[i];
        struct connection *c = seat->connection;
        if (item->seq <= seat->from_seq || (origin[0] && strcmp(c->id, origin) == 0))
            continue;
        c->ops->deliver(c, stream, item, &packets);
        sent++;
    }
    metric_add(METRIC_FRAMES_SENT, sent);
}

static void membership_note(struct stream *stream, const struct stream_item *item,
                            enum event_kind kind)
{
    if (item->kind != kind || item->seq <= stream->membership_seq)
        return;
    struct user *user = user_find(stream->gateway, item->user_id);
    stream->membership_seq = item->seq;
    if (user && kind == EVENT_JOIN) {
        stream_seat_user(stream, user, item->seq - 1);
    } else if (user) {
        stream_unseat_user(stream, user, item->seq);
        if (!stream_has_user(stream, user)) // else all came after it
            left_tell(stream, user, item->ts);
    }
}

// All up to `seq` was sent, or told of as a gap.
static void sent_note(struct stream *stream, int64_t seq)
{
    stream->sent_seq = seq;
    if (stream->known_seq < seq)
        stream->known_seq = seq;
    own_posts_trim(stream);
    marks_release(stream);
    if (stream->watermark_seq > 0 && stream->watermark_seq <= seq)
        watermark_passed(stream);
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
    hole_heard(stream, stream->known_seq);
    watermark_want(stream->gateway); // the one on its way took it for sent
}

void stream_send(struct stream *stream, const struct stream_item *item)
{
    membership_note(stream, item, EVENT_JOIN);
    seats_send(stream, item);
    focus_arrived(stream, item);
    membership_note(stream, item, EVENT_LEAVE);
    if (item->kind == EVENT_DELETE || item->kind == EVENT_EDIT)
        changed_tell(stream, item->seq);
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
    hole_heard(stream, stream->known_seq);
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
        hole_heard(stream, event->seq);
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

static void gap_tell(const struct seat *seat, int64_t to_seq, struct packets *packets)
{
    struct connection *c = seat->connection;
    if (seat->from_seq < to_seq && c->ops->gap)
        c->ops->gap(c, packets);
}

void stream_skip(struct stream *stream, int64_t to_seq)
{
    CLEANUP(buffer_done) struct buffer out;
    buffer_init(&out, GAP_MAX);
    stream_gap_write(stream->channel_id, stream->sent_seq + 1, to_seq, &out);
    CLEANUP(packets_done) struct packets packets = packets_of(out.data, out.length);
    for (uint32_t i = 0; !buffer_failed(&out) && i < stream->seat_count; i++)
        gap_tell(&stream->seats[i], to_seq, &packets);
    metric_add(METRIC_GAPS_TOLD, 1);
    sent_note(stream, to_seq);
    if (stream->membership_seq < to_seq)
        stream->membership_seq = to_seq;
    members_doubt(stream);
}
