// SPDX-License-Identifier: Apache-2.0
// The position up to which this gateway's event streams and native sockets have been sent
// everything. It is the `id` of events and the position of sockets.
//
// About once a second the gateway reads a snapshot from Postgres: the lowest running transaction,
// and the heads of the subscribed channels that changed. When all events up to these heads were
// sent (missing ones are read like any other gap), everything below that transaction was sent.
// Marks, joins and leaves have no seq to prove this: for them, the position is some seconds older,
// and does not advance while the outbox has old rows.
#include "watermark.h"

#include "channel/feed.h"
#include "connection/connection.h"
#include "core.h"
#include "late.h"
#include "position.h"
#include "user/missed_marks.h"

#include "base/check.h"
#include "base/memory.h"

#include <stdlib.h>

// The next query waits for the pause, and for COST_FACTOR times the duration of the last one: with
// any number of channels, Postgres spends at most a few hundredths of a core on it.
enum { PAUSE_MS = 1000, COST_FACTOR = 50 };

static const struct statement ASK = {
    "gateway_watermark",
    "SELECT t.xid, t.seconds, t.late, c.id, c.seq, c.changed < t.xid::xid8 FROM"
    " (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xid,"
    " extract(epoch FROM clock_timestamp())::bigint AS seconds, " OUTBOX_LATE(
        "2 seconds") " AS late)"
                     " t LEFT JOIN channel_heads c ON c.id = ANY ($1) AND c.changed >= $2::xid8"};

enum { COLUMN_XID, COLUMN_SECONDS, COLUMN_LATE, COLUMN_CHANNEL, COLUMN_SEQ, COLUMN_COVERED };

// Marks below the older of two notes were received. A new note is taken while nothing is late.
static void received_update(struct gateway *gateway, bool late)
{
    struct watermark *w = gateway->watermark;
    struct position now = w->next;
    if (w->notes[0].xid == 0) {
        w->notes[0] = w->notes[1] = now;
        if (missed_marks_noted_xid(gateway) > 0) // noted when the first connection was opened
            w->notes[0].xid = missed_marks_noted_xid(gateway);
        w->noted_ms = loop_now_ms(gateway->loop);
    } else if (!late && w->asked_ms - w->noted_ms >= RECEIVED_LAG_S * 1000) {
        w->notes[0] = w->notes[1];
        w->notes[1] = now;
        w->noted_ms = loop_now_ms(gateway->loop);
    }
    w->next.received_xid = w->notes[0].xid < now.xid ? w->notes[0].xid : now.xid;
}

static void watermark_reached(struct gateway *gateway)
{
    struct watermark *w = gateway->watermark;
    w->position = w->next;
    w->serial = w->next_serial;
    w->next.xid = 0;
    position_print(&w->position, NULL, w->text);
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (c->ops->settle)
            c->ops->settle(c);
    }
}

void watermark_passed(struct feed *feed)
{
    struct watermark *w = feed->gateway->watermark;
    feed->watermark_seq = 0;
    if (--w->waiting == 0)
        watermark_reached(feed->gateway);
}

static void watermark_await(struct gateway *gateway, const struct result *result, int row)
{
    struct feed *feed = feed_find(gateway, result_text(result, row, COLUMN_CHANNEL));
    int64_t seq = result_int(result, row, COLUMN_SEQ);
    if (feed && result_bool(result, row, COLUMN_COVERED))
        feed->covered_seq = seq;
    if (!feed || seq <= feed->sent_seq)
        return;
    feed->watermark_seq = seq;
    gateway->watermark->waiting++;
    feed_note_head(feed, seq);
}

static void watermark_take(struct gateway *gateway, const struct result *result)
{
    struct watermark *w = gateway->watermark;
    w->next.xid = result_int(result, 0, COLUMN_XID);
    w->next.seconds = result_int(result, 0, COLUMN_SECONDS);
    w->next.era = store_era(gateway->store).number;
    received_update(gateway, result_bool(result, 0, COLUMN_LATE));
    w->waiting = 1; // until all rows are processed
    for (int row = 0; row < result_rows(result); row++)
        if (!result_is_null(result, row, COLUMN_CHANNEL))
            watermark_await(gateway, result, row);
    if (--w->waiting == 0)
        watermark_reached(gateway);
}

static void on_answer(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    struct watermark *w = gateway->watermark;
    if (!gateway_answer(gateway))
        return;
    int64_t pause_ms = COST_FACTOR * (loop_now_ms(gateway->loop) - w->asked_ms);
    w->is_asked = false;
    if (outcome->r == 0)
        watermark_take(gateway, outcome->result);
    else
        w->is_whole = false;
    loop_timer_set(gateway->watermark->timer, pause_ms > PAUSE_MS ? pause_ms : PAUSE_MS);
}

static void watermark_ask(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    struct watermark *w = gateway->watermark;
    params_open_text_array(&params);
    for (const struct feed *feed = gateway->feeds; feed; feed = feed->hh.next)
        if (feed->resumable_count > 0)
            params_element_text(&params, feed->channel_id);
    params_close_array(&params);
    params_xid(&params, w->is_whole ? w->position.xid : 0);
    w->is_asked = w->is_whole = true;
    w->asked_ms = loop_now_ms(gateway->loop);
    w->next_serial++;
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &ASK, &params, on_answer, gateway);
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (gateway->watermark->is_asked || gateway->resumable_count == 0)
        return;
    if (gateway->watermark->next.xid == 0)
        watermark_ask(gateway);
    else // was not reached yet
        loop_timer_set(gateway->watermark->timer, PAUSE_MS);
}

void watermark_forget(struct gateway *gateway)
{
    gateway->watermark->notes[0].xid = 0;
}

void watermark_lower(struct gateway *gateway, int64_t xid)
{
    struct watermark *w = gateway->watermark;
    for (int i = 0; i < 2; i++)
        if (w->notes[i].xid > xid)
            w->notes[i].xid = xid;
    w->is_whole = false;
}

void watermark_request(struct gateway *gateway)
{
    gateway->watermark->is_whole = false;
    if (!gateway->watermark->is_asked)
        loop_timer_set(gateway->watermark->timer, 0);
}

int watermark_new(struct gateway *gateway)
{
    gateway->watermark = memory_must_new(sizeof *gateway->watermark);
    return loop_timer_new(gateway->loop, on_timer, gateway, &gateway->watermark->timer);
}

void watermark_free(struct gateway *gateway)
{
    if (!gateway->watermark)
        return;
    loop_timer_free(gateway->watermark->timer);
    free(TAKE(gateway->watermark));
}
