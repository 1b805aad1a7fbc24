// SPDX-License-Identifier: Apache-2.0
// Sends unread counts to native sockets when something other than a mark changes them: a delete, an
// edit of the mentions, a change of notification settings. All counts are read in one lane, which
// answers in the order of the requests, so the last frame sent is the newest, whatever caused it. A
// failed read is retried after a second.
#include "unread_frames.h"

#include "../channel/feed.h"
#include "../channel/held_marks.h"
#include "../connection/connection.h"
#include "../core.h"
#include "users.h"

#include "base/check.h"
#include "base/clock.h"
#include "unread/view.h"

#include <stdlib.h>
#include <string.h>

// Of the given users, those for whom the message changed by event $3 was or is unread and whose
// counts may differ now; with their counts.
static const struct statement CHANGED = {
    "gateway_unread_changed",
    "SELECT " UNREAD_VIEW_SELECT(
        "r") " FROM changes e JOIN messages d ON d.channel_id = e.channel_id AND d.ts = "
             "e.message_ts"
             " JOIN unread_rows r ON r.channel_id = e.channel_id AND r.user_id = ANY ($2)"
             " WHERE e.channel_id = $1 AND e.seq = $3 AND d.counted AND d.ord > r.ord"
             " AND d.user_id <> r.user_id AND r.active AND (e.kind = 'delete'"
             " OR r.user_id = ANY (e.mentioned) OR '' = ANY (e.mentioned))"};

// The counts of members $2 in channels $1.
static const struct statement STATE = {
    "gateway_unread_state", "SELECT " UNREAD_VIEW_SELECT(
                                "r") " FROM unnest($1, $2) AS a (channel, member) JOIN unread_rows "
                                     "r ON r.channel_id = a.channel"
                                     " AND r.user_id = a.member AND r.active"};

enum { CHANGED_RECENTLY_MS = 5000, MARK_LATE_US = 1000000 };

static const enum store_lane LANE = STORE_READ_TOO;

// A query about a channel's users here.
struct unread_frames_ask {
    uint32_t tag;
    struct gateway *gateway;
    char channel_id[EVENT_ID_SIZE];
};

void unread_frames_send(struct gateway *gateway, const struct result *views)
{
    struct unread_view view;

    for (int row = 0; row < result_rows(views); row++) {
        unread_view_read(views, row, 0, &view);
        held_marks_offer_view(gateway, UNREAD_FRAME_CHANGED, &view);
    }
}

static void on_refreshed(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);

    if (!gateway_answer(gateway))
        return;
    if (outcome->r < 0)
        gateway->missed_marks_due = true;
    else
        unread_frames_send(gateway, outcome->result);
}

void unread_frames_read(struct gateway *gateway, struct params *params, store_fn *fn)
{
    gateway_ask(gateway);
    store_call(gateway->store, LANE, &STATE, params, fn, gateway);
}

void unread_frames_refresh(struct gateway *gateway, const char *channel_id, const char *user_id)
{
    CLEANUP_PARAMS struct params params = {0};

    params_open_text_array(&params);
    params_element_text(&params, channel_id);
    params_close_array(&params);
    params_open_text_array(&params);
    params_element_text(&params, user_id);
    params_close_array(&params);
    unread_frames_read(gateway, &params, on_refreshed);
}

// Clocks of instances may differ: that costs an extra read, no more.
static bool is_late(const struct event *event)
{
    int64_t age_us = clock_wall_us() - event->event_ts;

    return age_us > MARK_LATE_US || age_us < -MARK_LATE_US;
}

void unread_frames_on_mark(struct gateway *gateway, const struct event *event, const char *user_id)
{
    const struct feed *feed = feed_find(gateway, event->channel_id);

    if (is_late(event) || (feed && feed->changed_ms > 0 &&
                           loop_now_ms(gateway->loop) - feed->changed_ms < CHANGED_RECENTLY_MS))
        unread_frames_refresh(gateway, event->channel_id, user_id);
}

static void feed_miss(struct feed *feed)
{
    feed->unread_frames_due = feed->gateway->unread_frames_due = true;
}

static void on_changed(void *arg, const struct store_outcome *outcome)
{
    struct unread_frames_ask *ask = CAST(unread_frames_ask, arg);
    struct gateway *gateway = ask->gateway;
    bool alive = gateway_answer(gateway);
    struct feed *feed = alive ? feed_find(gateway, ask->channel_id) : NULL;

    TAGGED_FREE(ask);
    if (alive && outcome->r == 0)
        unread_frames_send(gateway, outcome->result);
    else if (feed)
        feed_miss(feed);
}

// Runs a statement, and sends the counts to the channel's users here. A failure is retried.
static void feed_ask(struct feed *feed, const struct statement *statement, struct params *params)
{
    struct unread_frames_ask *ask = TAGGED_NEW(unread_frames_ask);

    if (!ask) {
        feed_miss(feed);
        return;
    }
    ask->gateway = feed->gateway;
    memcpy(ask->channel_id, feed->channel_id, sizeof ask->channel_id);
    gateway_ask(feed->gateway);
    store_call(feed->gateway->store, LANE, statement, params, on_changed, ask);
}

// Appends an array of the users whose native sockets are subscribed; returns its length.
static int subscribed_params(const struct feed *feed, struct params *params)
{
    int count = 0;

    params_open_text_array(params);
    for (uint32_t i = 0; i < feed->subscriber_count; i++) {
        const struct connection *c = feed->subscribers[i].connection;
        if (!c->native)
            continue;
        params_element_text(params, c->actor.user_id);
        count++;
    }
    params_close_array(params);
    return count;
}

void unread_frames_after(struct feed *feed, int64_t seq)
{
    CLEANUP_PARAMS struct params params = {0};

    feed->changed_ms = loop_now_ms(feed->gateway->loop);
    params_text(&params, feed->channel_id);
    int count = subscribed_params(feed, &params);
    params_int(&params, seq);
    if (count > 0)
        feed_ask(feed, &CHANGED, &params);
}

static void feed_refresh(struct feed *feed)
{
    CLEANUP_PARAMS struct params params = {0};

    params_open_text_array(&params);
    for (uint32_t i = 0; i < feed->subscriber_count; i++)
        if (feed->subscribers[i].connection->native)
            params_element_text(&params, feed->channel_id);
    params_close_array(&params);
    if (subscribed_params(feed, &params) > 0)
        feed_ask(feed, &STATE, &params);
}

void unread_frames_retry(struct gateway *gateway)
{
    if (!gateway->unread_frames_due)
        return;
    gateway->unread_frames_due = false;
    for (struct feed *feed = gateway->feeds; feed; feed = feed->hh.next) {
        if (!feed->unread_frames_due)
            continue;
        feed->unread_frames_due = false;
        feed_refresh(feed);
    }
}

// Strategies whose frames differ from the others': zset caps the counts, bitmap has none.
static bool frames_differ(int64_t strategy)
{
    return strategy == STRATEGY_ZSET || strategy == STRATEGY_BITMAP;
}

void unread_frames_refresh_all(struct feed *feed, const struct event *event)
{
    if (feed->generation < event->head.generation)
        feed->generation = event->head.generation;
    if (frames_differ(event->ts) || frames_differ(event->head.strategy))
        feed_refresh(feed);
}

void unread_frames_on_generation(struct feed *feed, int64_t generation)
{
    if (feed->generation >= 0 && feed->generation < generation)
        feed_refresh(feed);
    if (feed->generation < generation)
        feed->generation = generation;
}
