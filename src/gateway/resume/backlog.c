// SPDX-License-Identifier: Apache-2.0
// Sends a connection's backlog at the pace of its output queue. The subscription to a channel takes
// over when the channel's part was sent.
#include "backlog.h"

#include "../channel/feed.h"
#include "../channel/subscribers.h"
#include "../connection/connection.h"
#include "../connection/outlet.h"
#include "../connection/packet.h"
#include "../core.h"
#include "../gateway_session.h"
#include "../user/users.h"
#include "../watermark.h"
#include "resume.h"
#include "resume_ops.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"

enum { GAP_MAX = 4096 };

static struct connection *connection_of(void *arg)
{
    return CAST(backlog, arg)->connection;
}

// Leaves room in the queue for new events.
static bool has_room(void *arg, int frames)
{
    const struct connection *c = connection_of(arg);
    (void)frames;
    return c->state == CONNECTION_OPEN &&
           outlet_unsent(&c->outlet) <=
               (size_t)c->gateway->options.settings.socket_queue_max_bytes / 4;
}

static bool is_ready(void *arg)
{
    return has_room(arg, 1);
}

static void frame_send(void *arg, const char *type, const struct buffer *frame)
{
    connection_send_text(connection_of(arg), type, frame->data, frame->length);
}

static void own_send(void *arg, const char *type, const struct buffer *frame)
{
    if (connection_of(arg)->native)
        frame_send(arg, type, frame);
}

static void gap_send(void *arg, const char *channel_id, int64_t from_seq, int64_t to_seq)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(GAP_MAX);
    feed_gap_write(channel_id, from_seq, to_seq, &out);
    if (buffer_failed(&out))
        return;
    CLEANUP(packets_done) struct packets packets = packets_of("gap", out.data, out.length);
    connection_gap(connection_of(arg), &packets);
}

static struct feed_subscriber *subscriber_find(void *arg, const struct feed *feed)
{
    const struct connection *c = connection_of(arg);
    for (uint32_t i = 0; i < c->subscription_count; i++)
        if (c->subscriptions[i].feed == feed)
            return &c->subscriptions[i].feed->subscribers[c->subscriptions[i].subscriber];
    return NULL;
}

static void backlog_over(void *arg)
{
    struct backlog *backlog = CAST(backlog, arg);
    struct connection *c = backlog->connection;
    resume_free(TAKE(backlog->resume));
    if (c->ops->settle)
        c->ops->settle(c);
}

static void backlog_fail(void *arg)
{
    connection_close(connection_of(arg), CLOSE_RESTART, "try again");
}

static const struct resume_ops OPS = {.is_ready = is_ready,
                                      .has_room = has_room,
                                      .send = frame_send,
                                      .send_own = own_send,
                                      .gap = gap_send,
                                      .subscriber = subscriber_find,
                                      .over = backlog_over,
                                      .fail = backlog_fail,
                                      .first_batch = 1,
                                      .first_page = 64};

void backlog_init(struct backlog *backlog, struct connection *c, const struct place *place)
{
    *backlog = (struct backlog){.tag = TAG(backlog), .connection = c};
    if (place)
        backlog->place = *place;
}

const struct statement *backlog_channels(struct backlog *backlog, struct params *params)
{
    resume_params(backlog->connection->gateway, &backlog->place, params);
    return &resume_statement;
}

bool backlog_is_of_another(const struct backlog *backlog)
{
    return position_is_of_another(&backlog->place.since, backlog->connection->actor.user_id);
}

// A subscriber that is behind receives nothing until it has caught up. Events that its feed sent
// after the snapshot have passed this connection by, so they count as missed, too.
static int channel_enter(struct backlog *backlog, const struct result *result, int row)
{
    struct connection *c = backlog->connection;
    const char *id = result_text(result, row, RESUME_CHANNEL);
    int64_t seq = result_int(result, row, RESUME_SEQ);
    struct feed *feed = feed_open(c->gateway, c->actor.workspace_id, id, seq);
    if (!feed)
        return -ERROR_MEMORY;
    if (feed->sent_ts == 0)
        feed->sent_ts = result_int(result, row, RESUME_LAST_TS);
    bool is_behind = result_bool(result, row, RESUME_CHANGED) || feed->sent_seq > seq;
    if (backlog->resume)
        resume_add(backlog->resume, result, row, is_behind);
    return subscribers_enter(feed, c, seq, backlog->resume && is_behind ? INT64_MAX : seq);
}

static int row_take(struct backlog *backlog, const struct result *result, int row)
{
    if (result_is_null(result, row, RESUME_CHANNEL))
        return 0;
    if (result_bool(result, row, RESUME_ACTIVE))
        return channel_enter(backlog, result, row);
    if (backlog->resume)
        resume_add(backlog->resume, result, row, result_bool(result, row, RESUME_CHANGED));
    return 0;
}

static int place_begin(struct backlog *backlog, const struct result *result)
{
    const struct connection *c = backlog->connection;
    struct place *place = &backlog->place;
    backlog->is_too_old = resume_is_too_old(c->gateway, place, result);
    if (backlog->is_too_old || place->since.xid == 0) {
        *place = (struct place){.since = resume_now(c->gateway, c->actor.user_id, result)};
        place_print(place);
        return 0;
    }
    backlog->resume = resume_new(c->gateway, &c->actor, place, &OPS, backlog, result);
    return backlog->resume ? 0 : -ERROR_MEMORY;
}

int backlog_begin(struct backlog *backlog, const struct result *result)
{
    struct connection *c = backlog->connection;
    int64_t xid = result_int(result, 0, RESUME_XID);
    backlog->serial = c->gateway->watermark->next_serial;
    int r = place_begin(backlog, result);
    if (r >= 0)
        r = session_enter_user(c);
    if (r >= 0 && backlog->resume && (c->user->resumed_xid == 0 || c->user->resumed_xid > xid))
        c->user->resumed_xid = xid;
    for (int row = 0; r >= 0 && row < result_rows(result); row++)
        r = row_take(backlog, result, row);
    if (r >= 0 && backlog->resume)
        resume_added(backlog->resume);
    metric_add(METRIC_STREAMS_RESUMED, r >= 0 && backlog->resume);
    return r;
}

void backlog_advance(struct backlog *backlog)
{
    resume_advance(backlog->resume);
}

void backlog_settle(struct backlog *backlog)
{
    const struct connection *c = backlog->connection;
    if (backlog->resume || c->state != CONNECTION_OPEN)
        return;
    if ((int32_t)(c->gateway->watermark->serial - backlog->serial) > 0)
        backlog->is_settled = true;
}

const char *backlog_position(const struct backlog *backlog)
{
    return backlog->is_settled ? backlog->connection->gateway->watermark->text
                               : backlog->place.text;
}

// Adds the channels that were sent further than the watermark, or, until the connection has its
// first one, further than when it subscribed. False: too many.
static bool beyond_collect(const struct backlog *backlog, struct beyond *beyond)
{
    const struct connection *c = backlog->connection;
    for (uint32_t i = 0; i < c->subscription_count; i++) {
        const struct feed *feed = c->subscriptions[i].feed;
        int64_t from_seq = feed->subscribers[c->subscriptions[i].subscriber].from_seq;
        int64_t covered_seq = backlog->is_settled ? feed->covered_seq : from_seq;
        if (from_seq == INT64_MAX)
            continue; // is behind
        int64_t seq = feed->sent_seq > from_seq ? feed->sent_seq : from_seq;
        if (seq > covered_seq && !beyond_add(beyond, feed->channel_id, seq))
            return false;
    }
    return true;
}

bool backlog_position_own(const struct backlog *backlog, char *ret_text)
{
    struct place place = backlog->place;
    if (backlog->is_settled) {
        place = (struct place){.since = backlog->connection->gateway->watermark->position};
        place.since.owner = backlog->place.since.owner;
    }
    place_drop_reached(&place);
    if (!beyond_collect(backlog, &place.beyond) && backlog->is_settled)
        return false;
    place_print_all(&place, ret_text);
    return true;
}

bool backlog_joined(struct backlog *backlog, const struct feed *feed)
{
    return resume_joined(backlog->resume, feed->channel_id);
}

bool backlog_awaits(struct backlog *backlog, const struct event *event)
{
    return resume_awaits(backlog->resume, event);
}

void backlog_end(struct backlog *backlog)
{
    // The connection may end before its backlog was sent.
    struct resume *resume = TAKE(backlog->resume);
    metric_add(METRIC_STREAMS_UNFINISHED, resume != NULL);
    resume_free(resume);
}
