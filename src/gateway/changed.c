// SPDX-License-Identifier: Apache-2.0
// Tells native sockets when something other than a mark changed what they have unread: a delete.
#include "gateway_int.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "unread/view.h"

#include <stdlib.h>
#include <string.h>

// Of the given users, those for whom the message deleted by event $3 was unread, with what is left.
static const struct statement CHANGED = {
    "gateway_unread_changed",
    "SELECT " UNREAD_VIEW_SELECT(
        "r") " FROM changes e JOIN messages d ON d.channel_id = e.channel_id AND d.ts = "
             "e.message_ts"
             " JOIN unread_rows r ON r.channel_id = e.channel_id AND r.user_id = ANY ($2)"
             " WHERE e.channel_id = $1 AND e.seq = $3 AND e.kind = 'delete' AND d.counted AND "
             "d.ord > r.ord"
             " AND d.user_id <> r.user_id AND r.active"};

enum { FRAME_MAX_BYTES = 4096 };

static void view_send(struct gateway *gateway, const struct unread_view *view)
{
    struct user *user = user_find(gateway, view->user_id);
    CLEANUP(buffer_done) struct buffer out;

    buffer_init(&out, FRAME_MAX_BYTES);
    unread_frame_write(&out, "unread_changed", view, clock_wall_us());
    if (user == NULL || buffer_failed(&out))
        return;
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (c->native)
            connection_send_text(c, out.data, out.length);
    }
}

static void on_changed(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = arg;
    struct unread_view view;

    if (!gateway_answer(gateway))
        return;
    for (int row = 0; outcome->r == 0 && row < result_rows(outcome->result); row++) {
        unread_view_read(outcome->result, row, 0, &view);
        view_send(gateway, &view);
    }
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
            params_element_text(&params, c->actor.user_id, strlen(c->actor.user_id));
        any = any || c->native;
    }
    params_close_array(&params);
    params_int(&params, seq);
    if (!any)
        return;
    gateway_ask(stream->gateway);
    store_call(stream->gateway->store, STORE_READ, &CHANGED, &params, on_changed, stream->gateway);
}
