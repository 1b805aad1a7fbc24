// SPDX-License-Identifier: Apache-2.0
// A channel's members. Joins and leaves are events of the channel like any other; but some may be
// missed: before the channel's topic was subscribed here, in a gap, or during an outage of the
// topics. Then the members are read from Postgres.
#include "members.h"

#include "../core.h"
#include "../user/join_frames.h"
#include "../user/users.h"
#include "feed.h"
#include "subscribers.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static const struct statement check = {
    "gateway_members",
    "SELECT a.id, coalesce(m.active, false), coalesce(m.member_seq, 0) FROM unnest($2) AS a (id)"
    " LEFT JOIN channel_members m ON m.channel_id = $1 AND m.user_id = a.id"};

static const struct statement sweep = {
    "gateway_joins", "SELECT m.user_id, m.channel_id, m.member_seq FROM channel_members m"
                     " WHERE m.user_id = ANY($1) AND m.active"
                     " AND m.joined_at > now() - make_interval(secs => $2::double precision)"};

struct members_ask {
    uint32_t tag;
    struct gateway *gateway;
    int64_t membership_seq;
    char channel_id[EVENT_ID_SIZE];
};

static void member_subscriber(struct feed *feed, struct user *user, int64_t from_seq)
{
    if (subscribers_add_user(feed, user, from_seq))
        join_frames_send(feed, user);
}

// The user who joined or left; NULL: not connected here, or the event is old.
static struct user *member_of(struct feed *feed, const struct feed_item *item)
{
    if (item->seq <= feed->membership_seq)
        return NULL;
    feed->membership_seq = item->seq;
    return user_find(feed->gateway, item->user_id);
}

void members_on_join(struct feed *feed, const struct feed_item *item)
{
    struct user *user = member_of(feed, item);
    if (user)
        member_subscriber(feed, user, item->seq - 1);
}

void members_on_leave(struct feed *feed, const struct feed_item *item)
{
    struct user *user = member_of(feed, item);
    if (!user)
        return;
    subscribers_remove_user(feed, user, item->seq);
    if (!subscribers_have_user(feed, user)) // otherwise all connections subscribed after the leave
        join_frames_send_left(feed, user, item->ts);
}

static void member_apply(struct feed *feed, const struct result *result, int row)
{
    struct user *user = user_find(feed->gateway, result_text(result, row, 0));
    int64_t from_seq = result_int(result, row, 2) - 1;
    if (!user)
        return;
    if (!result_bool(result, row, 1)) {
        if (from_seq < feed->sent_seq) // otherwise the leave itself will arrive
            subscribers_remove_user(feed, user, INT64_MAX);
        return;
    }
    if (subscribers_have_user(feed, user))
        return;
    if (from_seq < feed->sent_seq)
        feed_rewind(feed, from_seq);
    member_subscriber(feed, user, from_seq);
}

static void check_soon(struct feed *feed)
{
    feed->members_due = true;
    gateway_check_soon(feed->gateway);
}

static void on_members(void *arg, const struct store_outcome *outcome)
{
    struct members_ask *ask = CAST(members_ask, arg);
    bool alive = gateway_answer(ask->gateway);
    struct feed *feed = alive ? feed_find(ask->gateway, ask->channel_id) : NULL;
    int64_t membership_seq = ask->membership_seq;
    TAGGED_FREE(ask);
    if (!feed || !feed->members_asked)
        return;
    feed->members_asked = false;
    // A join or leave sent in the meantime is newer than the answer: asks again. A failure is
    // retried soon as well, since a user who may have left must not stay subscribed for long.
    if (outcome->r < 0 || feed->membership_seq != membership_seq) {
        check_soon(feed);
        return;
    }
    for (int row = 0; row < result_rows(outcome->result); row++)
        member_apply(feed, outcome->result, row);
    if (!feed->members_due) // otherwise the answer does not cover a user who came since
        feed_continue(feed);
}

void members_check(struct feed *feed)
{
    CLEANUP_PARAMS struct params params = {0};
    struct gateway *gateway = feed->gateway;
    if (feed->members_asked) {
        check_soon(feed);
        return;
    }
    struct members_ask *ask = TAGGED_NEW(members_ask);
    if (!ask) {
        check_soon(feed);
        return;
    }
    ask->gateway = gateway;
    ask->membership_seq = feed->membership_seq;
    memcpy(ask->channel_id, feed->channel_id, sizeof ask->channel_id);
    feed->members_asked = true;
    params_text(&params, feed->channel_id);
    params_open_text_array(&params);
    for (struct user *user = gateway->users; user; user = user->hh.next)
        if (strcmp(user->workspace->id, feed->workspace_id) == 0)
            params_element_text(&params, user->id);
    params_close_array(&params);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_READ, &check, &params, on_members, ask);
}

void members_joined(struct gateway *gateway, struct user *user, const char *channel_id, int64_t seq,
                    struct event *event)
{
    struct feed *feed = feed_find(gateway, channel_id);
    if (feed && feed->sent_seq >= seq) {
        if (!subscribers_have_user(feed, user))
            members_check(feed);
        return;
    }
    if (!feed)
        feed = feed_open(gateway, user->workspace->id, channel_id, seq - 1);
    if (!feed)
        return;
    if (event)
        feed_offer(feed, event);
    else
        feed_note_head(feed, seq);
}

static void on_joins(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway_answer(gateway) || outcome->r < 0)
        return;
    for (int row = 0; row < result_rows(outcome->result); row++) {
        struct user *user = user_find(gateway, result_text(outcome->result, row, 0));
        if (user)
            members_joined(gateway, user, result_text(outcome->result, row, 1),
                           result_int(outcome->result, row, 2), NULL);
    }
}

static void joins_ask(struct gateway *gateway, struct params *params, int64_t since_s)
{
    params_close_array(params);
    params_int(params, since_s);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &sweep, params, on_joins, gateway);
}

void members_sweep(struct gateway *gateway, bool unconfirmed_only, int64_t since_s)
{
    CLEANUP_PARAMS struct params params = {0};
    int count = 0;
    for (struct user *user = gateway->users; user; user = user->hh.next) {
        if (unconfirmed_only && !user->is_unconfirmed)
            continue;
        user->is_unconfirmed = false;
        if (count++ == 0)
            params_open_text_array(&params);
        params_element_text(&params, user->id);
        if (count == USERS_SLICE) {
            joins_ask(gateway, &params, since_s);
            count = 0;
        }
    }
    if (count > 0)
        joins_ask(gateway, &params, since_s);
}

void members_check_due(struct gateway *gateway)
{
    for (struct feed *feed = gateway->feeds; feed; feed = feed->hh.next) {
        if (!feed->members_due)
            continue;
        feed->members_due = false;
        members_check(feed);
    }
}
