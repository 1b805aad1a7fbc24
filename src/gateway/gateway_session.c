// SPDX-License-Identifier: Apache-2.0
// Adds a connection to its user's connections and to its channels, and removes it.
#include "gateway_session.h"

#include "channel/feed.h"
#include "channel/held_marks.h"
#include "channel/subscribers.h"
#include "connection/connection.h"
#include "core.h"
#include "login.h"
#include "user/gateway_presence.h"
#include "user/users.h"
#include "watermark.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"

#include <stdlib.h>

static const struct statement CHANNELS = {"gateway_channels",
                                          "SELECT c.id, c.seq, c.last_ts FROM channel_members m "
                                          "JOIN channel_heads c ON c.id = m.channel_id"
                                          " WHERE m.user_id = $1 AND m.active"};

const struct statement *session_channels(struct connection *c, struct params *params)
{
    (void)c, (void)params;
    return &CHANNELS;
}

static void count_open(const struct connection *c, int change)
{
    if (c->is_resumable)
        c->gateway->resumable_count += change;
    if (c->gateway->resumable_count == 0)
        watermark_forget(c->gateway);
    metric_add(c->ops->open_metric, change);
}

int session_enter_user(struct connection *c)
{
    ASSERT(!c->user);
    struct user *user = user_make(c->gateway, &c->actor);
    if (!user)
        return -ERROR_MEMORY;
    c->user = user;
    list_append(&user->connections, &c->user_link);
    user->manual_away = c->manual_away;
    presence_enter(user, c->gateway);
    count_open(c, 1);
    user->is_unconfirmed = true;
    gateway_check_soon(c->gateway);
    return 0;
}

static void user_leave(struct connection *c)
{
    struct gateway *gateway = c->gateway;
    struct user *user = TAKE(c->user);
    count_open(c, -1);
    list_remove(&c->user_link);
    if (!list_is_empty(&user->connections)) {
        if (!gateway->ended)
            presence_enter(user, gateway);
        return;
    }
    held_marks_leave_user(user);
    user_forget(gateway, user);
    presence_leave(user, gateway);
    free(user);
}

// Delivers only events after the snapshot, and after those that a feed has already sent: all others
// happened before hello.
int session_enter(struct connection *c, const struct result *channels)
{
    int r = session_enter_user(c);
    for (int row = 0; r >= 0 && row < result_rows(channels); row++) {
        int64_t seq = result_int(channels, row, 1);
        struct feed *feed =
            feed_open(c->gateway, c->actor.workspace_id, result_text(channels, row, 0), seq);
        if (!feed)
            return -ERROR_MEMORY;
        if (feed->sent_ts == 0)
            feed->sent_ts = result_int(channels, row, 2);
        r = subscribers_enter(feed, c, seq, seq);
    }
    return r;
}

void session_leave(struct connection *c)
{
    login_forget(c);
    if (!c->user)
        return;
    subscribers_leave(c);
    user_leave(c);
}
