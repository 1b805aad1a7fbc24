// SPDX-License-Identifier: Apache-2.0
// Who gets a channel's events: each connection of a member has a seat, and gets what comes after
// it. A socket does not get its own posts: it has their acks.
#include "seats.h"

#include "connection.h"
#include "core.h"
#include "focus.h"
#include "packet.h"
#include "stream.h"
#include "users.h"

#include "base/error.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEATS_FIRST = 2, GAP_MAX = 256 };

bool seats_have(const struct stream *stream, const struct connection *c)
{
    for (uint32_t i = 0; i < stream->seat_count; i++)
        if (stream->seats[i].connection == c)
            return true;
    return false;
}

bool seats_have_user(const struct stream *stream, const struct user *user)
{
    LIST_FOREACH(link, &user->connections)
    {
        if (!seats_have(stream, LIST_ITEM(link, struct connection, user_link)))
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

int seats_add(struct stream *stream, struct connection *c, int64_t from_seq)
{
    if (seats_grow(stream) < 0 || follows_grow(c) < 0)
        return -ERROR_MEMORY;
    stream->empty_since_ms = 0;
    stream->resumable_count += c->is_resumable;
    stream->seats[stream->seat_count] = (struct seat){c, c->follow_count, from_seq};
    c->follows[c->follow_count++] = (struct follow){stream, stream->seat_count++};
    return 0;
}

int seats_enter(struct stream *stream, struct connection *c, int64_t seq, int64_t from_seq)
{
    int r = seats_add(stream, c, from_seq);
    // The leave that was sent may have been this user's, who did not sit here yet.
    if (r >= 0 && stream->membership_seq > seq)
        stream_doubt(stream);
    stream_heard(stream, seq);
    return r;
}

bool seats_add_user(struct stream *stream, struct user *user, int64_t from_seq)
{
    bool any = false;
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (seats_have(stream, c))
            continue;
        any = true;
        bool waits = c->ops->joins && c->ops->joins(c, stream);
        if (seats_add(stream, c, waits ? INT64_MAX : from_seq) < 0)
            connection_doom(c, CLOSE_POLICY, "no memory");
    }
    return any;
}

// The last seat and the last follow move into the places that become free.
static void seat_remove(struct stream *stream, uint32_t index)
{
    struct connection *c = stream->seats[index].connection;
    focus_end(stream, c);
    uint32_t follow = stream->seats[index].follow;
    stream->resumable_count -= c->is_resumable;
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

void seats_remove_user(struct stream *stream, const struct user *user, int64_t seq)
{
    for (uint32_t i = stream->seat_count; i > 0; i--) {
        const struct seat *seat = &stream->seats[i - 1];
        if (seat->connection->user == user && (seat->from_seq < seq || seat->from_seq == INT64_MAX))
            seat_remove(stream, i - 1);
    }
}

void seats_leave(struct connection *c)
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

void seats_own_posts_trim(struct stream *stream)
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

void seats_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
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

void seats_send(struct stream *stream, const struct stream_item *item)
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

static void gap_tell(const struct seat *seat, int64_t to_seq, struct packets *packets)
{
    struct connection *c = seat->connection;
    if (seat->from_seq < to_seq && c->ops->gap)
        c->ops->gap(c, packets);
}

void seats_send_gap(struct stream *stream, int64_t to_seq)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(GAP_MAX);
    stream_gap_write(stream->channel_id, stream->sent_seq + 1, to_seq, &out);
    CLEANUP(packets_done) struct packets packets = packets_of(out.data, out.length);
    for (uint32_t i = 0; !buffer_failed(&out) && i < stream->seat_count; i++)
        gap_tell(&stream->seats[i], to_seq, &packets);
    metric_add(METRIC_GAPS_TOLD, 1);
}
