// SPDX-License-Identifier: Apache-2.0
// Tells native sockets when something other than a mark changed what they have unread: a delete, an
// edit of who is mentioned, what the user wants to hear of. All is read in one lane, which answers
// in the order asked: what is sent last is newest, however the news of it came.
#include "gateway_int.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "unread/view.h"

#include <stdlib.h>

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

enum { FRAME_MAX_BYTES = 4096 };

static void view_send(struct gateway *gateway, const struct unread_view *view)
{
    struct user *user = user_find(gateway, view->user_id);
    CLEANUP(buffer_done) struct buffer out;

    buffer_init(&out, FRAME_MAX_BYTES);
    unread_frame_write(&out, "unread_changed", view, clock_wall_us());
    if (user == NULL || buffer_failed(&out))
        return;
    CLEANUP(packets_done) struct packets packets = packets_of(out.data, out.length);
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (c->native)
            connection_send(c, &packets);
    }
}

void changed_send(struct gateway *gateway, const struct result *views)
{
    struct unread_view view;

    for (int row = 0; row < result_rows(views); row++) {
        unread_view_read(views, row, 0, &view);
        view_send(gateway, &view);
    }
}

static void on_changed(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = arg;

    if (gateway_answer(gateway) && outcome->r == 0)
        changed_send(gateway, outcome->result);
}

static void on_heard(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = arg;

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
    store_call(gateway->store, STORE_READ, &STATE, params, fn, gateway);
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

void changed_tell(struct stream *stream, int64_t seq)
{
    CLEANUP_PARAMS struct params params = {0};
    bool any = false;

    params_text(&params, stream->channel_id);
    params_open_text_array(&params);
    for (uint32_t i = 0; i < stream->seat_count; i++) {
        const struct connection *c = stream->seats[i].connection;
        if (c->native)
            params_element_text(&params, c->actor.user_id);
        any = any || c->native;
    }
    params_close_array(&params);
    params_int(&params, seq);
    if (!any)
        return;
    gateway_ask(stream->gateway);
    store_call(stream->gateway->store, STORE_READ, &CHANGED, &params, on_changed, stream->gateway);
}

// What zset caps and bitmap does not count at all, others count.
static bool shows_otherwise(int64_t strategy)
{
    return strategy == STRATEGY_ZSET || strategy == STRATEGY_BITMAP;
}

void changed_tell_all(struct stream *stream, const struct event *event)
{
    CLEANUP_PARAMS struct params params = {0};
    const struct connection *c;

    if (!shows_otherwise(event->ts) && !shows_otherwise(event->head.strategy))
        return;
    params_open_text_array(&params);
    for (uint32_t i = 0; i < stream->seat_count; i++)
        if (stream->seats[i].connection->native)
            params_element_text(&params, stream->channel_id);
    params_close_array(&params);
    params_open_text_array(&params);
    for (uint32_t i = 0; i < stream->seat_count; i++) {
        c = stream->seats[i].connection;
        if (c->native)
            params_element_text(&params, c->actor.user_id);
    }
    params_close_array(&params);
    changed_read(stream->gateway, &params, on_heard);
}
