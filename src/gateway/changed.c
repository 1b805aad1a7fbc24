// SPDX-License-Identifier: Apache-2.0
// Tells native sockets when something other than a mark changed what they have unread: a delete, an
// edit of who is mentioned, what the user wants to hear of. All is read over one connection, which
// answers in the order asked: what is sent last is newest, however the news of it came. What could
// not be read is read again a second later.
#include "changed.h"

#include "connection.h"
#include "core.h"
#include "held_marks.h"
#include "stream.h"
#include "users.h"

#include "base/check.h"
#include "base/clock.h"
#include "unread/view.h"

#include <stdlib.h>
#include <string.h>

// Of the given users, those for whom the message that event $3 changed was or is unread, and
// differs now; with what is left.
static const struct statement CHANGED = {
    "gateway_unread_changed",
    "SELECT " UNREAD_VIEW_SELECT(
        "r") " FROM changes e JOIN messages d ON d.channel_id = e.channel_id AND d.ts = "
             "e.message_ts"
             " JOIN unread_rows r ON r.channel_id = e.channel_id AND r.user_id = ANY ($2)"
             " WHERE e.channel_id = $1 AND e.seq = $3 AND d.counted AND d.ord > r.ord"
             " AND d.user_id <> r.user_id AND r.active AND (e.kind = 'delete'"
             " OR r.user_id = ANY (e.mentioned) OR '' = ANY (e.mentioned))"};

// What members $2 of channels $1 have unread now.
static const struct statement STATE = {
    "gateway_unread_state", "SELECT " UNREAD_VIEW_SELECT(
                                "r") " FROM unnest($1, $2) AS a (channel, member) JOIN unread_rows "
                                     "r ON r.channel_id = a.channel"
                                     " AND r.user_id = a.member AND r.active"};

enum { CHANGED_LATELY_MS = 5000, MARK_LATE_US = 1000000 };

static const enum store_lane LANE = STORE_READ_TOO;

// About all of a channel's users here.
struct changed_ask {
    uint32_t tag;
    struct gateway *gateway;
    char channel_id[EVENT_ID_SIZE];
};

static void view_send(struct gateway *gateway, const struct unread_view *view)
{
    struct user *user = user_find(gateway, view->user_id);
    struct event *event =
        user ? unread_mark_event(UNREAD_FRAME_CHANGED, view, clock_wall_us()) : NULL;

    if (event)
        mark_offer(gateway, user, event);
    event_unref(event);
}

void changed_send(struct gateway *gateway, const struct result *views)
{
    struct unread_view view;

    for (int row = 0; row < result_rows(views); row++) {
        unread_view_read(views, row, 0, &view);
        view_send(gateway, &view);
    }
}

static void on_heard(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    if (outcome->r < 0)
        gateway->marks_missed = true;
    else
        changed_send(gateway, outcome->result);
}

void changed_read(struct gateway *gateway, struct params *params, store_fn *fn)
{
    gateway_ask(gateway);
    store_call(gateway->store, LANE, &STATE, params, fn, gateway);
}

void changed_hear(struct gateway *gateway, const char *channel_id, const char *user_id)
{
    CLEANUP_PARAMS struct params params = {0};

    params_open_text_array(&params);
    params_element_text(&params, channel_id);
    params_close_array(&params);
    params_open_text_array(&params);
    params_element_text(&params, user_id);
    params_close_array(&params);
    changed_read(gateway, &params, on_heard);
}

// Clocks of instances may be apart: that costs a reading, no more.
static bool is_late(const struct event *event)
{
    int64_t age_us = clock_wall_us() - event->event_ts;

    return age_us > MARK_LATE_US || age_us < -MARK_LATE_US;
}

void changed_marked(struct gateway *gateway, const struct event *event, const char *user_id)
{
    const struct stream *stream = stream_find(gateway, event->channel_id);

    if (is_late(event) || (stream && stream->changed_ms > 0 &&
                           loop_now_ms(gateway->loop) - stream->changed_ms < CHANGED_LATELY_MS))
        changed_hear(gateway, event->channel_id, user_id);
}

static void stream_miss(struct stream *stream)
{
    stream->changed_missed = stream->gateway->changes_missed = true;
}

static void on_changed(void *arg, const struct store_outcome *outcome)
{
    struct changed_ask *ask = CAST(changed_ask, arg);
    struct gateway *gateway = ask->gateway;
    bool alive = gateway_answer(gateway);
    struct stream *stream = alive ? stream_find(gateway, ask->channel_id) : NULL;

    TAGGED_FREE(ask);
    if (alive && outcome->r == 0)
        changed_send(gateway, outcome->result);
    else if (stream)
        stream_miss(stream);
}

// What a statement shows of a channel goes to its users here, or is missed.
static void stream_ask(struct stream *stream, const struct statement *statement,
                       struct params *params)
{
    struct changed_ask *ask = TAGGED_NEW(changed_ask);

    if (!ask) {
        stream_miss(stream);
        return;
    }
    ask->gateway = stream->gateway;
    memcpy(ask->channel_id, stream->channel_id, sizeof ask->channel_id);
    gateway_ask(stream->gateway);
    store_call(stream->gateway->store, LANE, statement, params, on_changed, ask);
}

// The users of native sockets that sit there; how many.
static int seated_params(const struct stream *stream, struct params *params)
{
    int count = 0;

    params_open_text_array(params);
    for (uint32_t i = 0; i < stream->seat_count; i++) {
        const struct connection *c = stream->seats[i].connection;
        if (!c->native)
            continue;
        params_element_text(params, c->actor.user_id);
        count++;
    }
    params_close_array(params);
    return count;
}

void changed_tell(struct stream *stream, int64_t seq)
{
    CLEANUP_PARAMS struct params params = {0};

    stream->changed_ms = loop_now_ms(stream->gateway->loop);
    params_text(&params, stream->channel_id);
    int count = seated_params(stream, &params);
    params_int(&params, seq);
    if (count > 0)
        stream_ask(stream, &CHANGED, &params);
}

static void stream_tell(struct stream *stream)
{
    CLEANUP_PARAMS struct params params = {0};

    params_open_text_array(&params);
    for (uint32_t i = 0; i < stream->seat_count; i++)
        if (stream->seats[i].connection->native)
            params_element_text(&params, stream->channel_id);
    params_close_array(&params);
    if (seated_params(stream, &params) > 0)
        stream_ask(stream, &STATE, &params);
}

void changed_tend(struct gateway *gateway)
{
    if (!gateway->changes_missed)
        return;
    gateway->changes_missed = false;
    for (struct stream *stream = gateway->streams; stream; stream = stream->hh.next) {
        if (!stream->changed_missed)
            continue;
        stream->changed_missed = false;
        stream_tell(stream);
    }
}

// What zset caps and bitmap does not count at all, others count.
static bool shows_otherwise(int64_t strategy)
{
    return strategy == STRATEGY_ZSET || strategy == STRATEGY_BITMAP;
}

void changed_tell_all(struct stream *stream, const struct event *event)
{
    if (stream->generation < event->head.generation)
        stream->generation = event->head.generation;
    if (shows_otherwise(event->ts) || shows_otherwise(event->head.strategy))
        stream_tell(stream);
}

void changed_generation(struct stream *stream, int64_t generation)
{
    if (stream->generation >= 0 && stream->generation < generation)
        stream_tell(stream);
    if (stream->generation < generation)
        stream->generation = generation;
}
