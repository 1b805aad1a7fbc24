// SPDX-License-Identifier: Apache-2.0
// Tells an event stream what it missed: its queue gives the pace, and the seats of its channels
// take over when a channel has been told.
#include "sse_backlog.h"

#include "../connection.h"
#include "../core.h"
#include "../gateway_session.h"
#include "../outlet.h"
#include "../resume/resume.h"
#include "../resume/resume_ops.h"
#include "../seats.h"
#include "../stream.h"
#include "../users.h"
#include "sse_state.h"

#include "base/buffer.h"
#include "base/error.h"

#include <string.h>

enum { GAP_MAX = 4096 };

// Frames of the present need some room, too.
static bool has_room(void *arg, int frames)
{
    const struct connection *c = arg;
    (void)frames;
    return c->state == CONNECTION_OPEN &&
           outlet_unsent(&c->outlet) <= (size_t)c->gateway->options.queue_max_bytes / 4;
}

static bool is_ready(void *arg)
{
    return has_room(arg, 1);
}

static void frame_send(void *arg, const char *frame, size_t length)
{
    connection_send_text(arg, frame, length);
}

static void gap_send(void *arg, const char *channel_id, int64_t from_seq, int64_t to_seq)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(GAP_MAX);
    stream_gap_write(channel_id, from_seq, to_seq, &out);
    if (!buffer_failed(&out))
        connection_send_text(arg, out.data, out.length);
}

static struct seat *seat_find(void *arg, const struct stream *stream)
{
    const struct connection *c = arg;
    for (uint32_t i = 0; i < c->follow_count; i++)
        if (c->follows[i].stream == stream)
            return &c->follows[i].stream->seats[c->follows[i].seat];
    return NULL;
}

static void backlog_over(void *arg)
{
    struct connection *c = arg;
    resume_free(TAKE(sse_of(c)->resume));
    c->ops->settle(c);
}

static void backlog_fail(void *arg)
{
    connection_doom(arg, CLOSE_RESTART, "try again");
}

static const struct resume_ops OPS = {.is_ready = is_ready,
                                      .has_room = has_room,
                                      .send = frame_send,
                                      .gap = gap_send,
                                      .seat = seat_find,
                                      .over = backlog_over,
                                      .fail = backlog_fail,
                                      .first_batch = 1,
                                      .first_page = 64};

// A seat that is behind gets nothing until it has caught up. What its stream sent after the
// snapshot went past this connection, too.
static int channel_enter(struct connection *c, const struct result *result, int row)
{
    const char *id = result_text(result, row, RESUME_CHANNEL);
    int64_t seq = result_int(result, row, RESUME_SEQ);
    struct stream *stream = stream_follow(c->gateway, c->actor.workspace_id, id, seq);
    if (!stream)
        return -ERROR_MEMORY;
    if (stream->sent_ts == 0)
        stream->sent_ts = result_int(result, row, RESUME_LAST_TS);
    bool is_behind = result_bool(result, row, RESUME_CHANGED) || stream->sent_seq > seq;
    if (sse_of(c)->resume)
        resume_add(sse_of(c)->resume, result, row, is_behind);
    return seats_enter(stream, c, seq, sse_of(c)->resume && is_behind ? INT64_MAX : seq);
}

static int row_take(struct connection *c, const struct result *result, int row)
{
    if (result_is_null(result, row, RESUME_CHANNEL))
        return 0;
    if (result_bool(result, row, RESUME_ACTIVE))
        return channel_enter(c, result, row);
    if (sse_of(c)->resume)
        resume_add(sse_of(c)->resume, result, row, result_bool(result, row, RESUME_CHANGED));
    return 0;
}

static int backlog_new(struct connection *c, const struct result *result)
{
    struct sse *sse = sse_of(c);
    if (sse->place.since.xid == 0) {
        sse->place.since = resume_now(c->gateway, c->actor.user_id, result);
        sse->place.progress = (struct progress){0};
        place_print(&sse->place);
        return 0;
    }
    sse->resume = resume_new(c->gateway, &c->actor, &sse->place, &OPS, c, result);
    return sse->resume ? 0 : -ERROR_MEMORY;
}

int sse_backlog_begin(struct connection *c, const struct result *result)
{
    int64_t xid = result_int(result, 0, RESUME_XID);
    int r = backlog_new(c, result);
    if (r >= 0)
        r = session_enter_user(c);
    if (r >= 0 && sse_of(c)->resume && (c->user->resumed_xid == 0 || c->user->resumed_xid > xid))
        c->user->resumed_xid = xid;
    for (int row = 0; r >= 0 && row < result_rows(result); row++)
        r = row_take(c, result, row);
    if (r >= 0 && sse_of(c)->resume)
        resume_added(sse_of(c)->resume);
    return r;
}

bool sse_backlog_joined(struct connection *c, const struct stream *stream)
{
    return resume_joined(sse_of(c)->resume, stream->channel_id);
}

bool sse_backlog_awaits(struct connection *c, const struct event *event)
{
    return resume_awaits(sse_of(c)->resume, event);
}
