// SPDX-License-Identifier: Apache-2.0
// Sends frames for new channels. Like marks they have no seq that would reveal a gap: after an
// outage of the topics, the channels created since (see missed_marks.c) are read from Postgres. A
// client must not receive a channel twice, so the last ones sent are remembered.
#include "created_channels.h"

#include "../core.h"
#include "users.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/memory.h"
#include "chat/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX_BYTES = 4096, CREATED_KNOWN = 128 };

struct created_channels {
    char ids[CREATED_KNOWN][EVENT_ID_SIZE]; // the last channels sent, a ring
    unsigned next;
    int64_t swept_xid;
};

// The first column is the next note; the others are NULL if there are no new channels.
static const struct statement SWEEP = {
    "gateway_created",
    "SELECT t.note, c.id, c.name, c.is_private, c.creator, c.created, c.workspace_id"
    " FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS note) t"
    " LEFT JOIN channels c ON c.workspace_id = ANY ($1) AND c.made >= $3::xid8"
    " AND (NOT c.is_private OR c.creator = ANY ($2)) ORDER BY c.made"};

static bool created_channel_is_known(const struct gateway *gateway, const char *channel_id)
{
    for (int i = 0; i < CREATED_KNOWN; i++)
        if (strcmp(gateway->created_channels->ids[i], channel_id) == 0)
            return true;
    return false;
}

// Whether the channel is not among the last ones sent. Adds it to them.
static bool created_channel_take(struct gateway *gateway, const char *channel_id)
{
    if (created_channel_is_known(gateway, channel_id))
        return false;
    char *place = gateway->created_channels->ids[gateway->created_channels->next++ % CREATED_KNOWN];
    snprintf(place, EVENT_ID_SIZE, "%s", channel_id);
    return true;
}

void created_channel_write(const struct result *result, int row, struct buffer *out)
{
    const struct frame_channel channel = {
        .id = result_text(result, row, 1),
        .name = result_text(result, row, 2),
        .is_private = result_bool(result, row, 3),
        .creator = result_text(result, row, 4),
        .created = result_int(result, row, 5),
    };

    frame_write_created(out, &channel);
}

static struct event *created_channel_event(const struct result *result, int row)
{
    struct buffer frame;

    buffer_init(&frame, FRAME_MAX_BYTES);
    created_channel_write(result, row, &frame);
    struct event *event = event_take_frame(EVENT_CREATED, &frame);
    if (!event)
        return NULL;
    event->is_private = result_bool(result, row, 3);
    snprintf(event->channel_id, sizeof event->channel_id, "%s", result_text(result, row, 1));
    snprintf(event->user_id, sizeof event->user_id, "%s", result_text(result, row, 4));
    snprintf(event->workspace_id, sizeof event->workspace_id, "%s", result_text(result, row, 6));
    return event;
}

void created_channels_send_user(struct gateway *gateway, struct user *user,
                                const struct event *event)
{
    if (created_channel_take(gateway, event->channel_id))
        user_send(user, event);
}

void created_channels_send_workspace(struct gateway *gateway, const char *workspace_id,
                                     const struct event *event)
{
    const struct workspace *workspace = workspace_find(gateway, workspace_id);
    if (workspace && created_channel_take(gateway, event->channel_id))
        workspace_send(workspace, event);
}

static void created_channel_send(struct gateway *gateway, const struct result *result, int row)
{
    struct event *event = created_channel_event(result, row);
    struct user *creator = event ? user_find(gateway, event->user_id) : NULL;

    if (event && !event->is_private)
        created_channels_send_workspace(gateway, event->workspace_id, event);
    else if (creator)
        created_channels_send_user(gateway, creator, event);
    event_unref(event);
}

static void on_sweep(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    for (int row = 0; outcome->r == 0 && row < result_rows(outcome->result); row++) {
        gateway->created_channels->swept_xid = result_int(outcome->result, row, 0);
        if (!result_is_null(outcome->result, row, 1))
            created_channel_send(gateway, outcome->result, row);
    }
}

int64_t created_channels_swept_xid(const struct gateway *gateway)
{
    return gateway->created_channels->swept_xid;
}

void created_channels_sweep(struct gateway *gateway, int64_t since_xid)
{
    CLEANUP_PARAMS struct params params = {0};

    gateway->created_channels->swept_xid = 0;
    params_open_text_array(&params);
    for (const struct workspace *w = gateway->workspaces; w; w = w->hh.next)
        params_element_text(&params, w->id);
    params_close_array(&params);
    users_params(gateway, &params);
    params_xid(&params, since_xid);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &SWEEP, &params, on_sweep, gateway);
}

int created_channels_new(struct gateway *gateway)
{
    gateway->created_channels = memory_must_new(sizeof *gateway->created_channels);
    return 0;
}

void created_channels_free(struct gateway *gateway)
{
    free(TAKE(gateway->created_channels));
}
