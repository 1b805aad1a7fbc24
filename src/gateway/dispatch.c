// SPDX-License-Identifier: Apache-2.0
// Dispatches a topic's message to channels, users and workspaces.
#include "dispatch.h"

#include "channel/ephemeral.h"
#include "channel/feed.h"
#include "channel/focus.h"
#include "channel/held_marks.h"
#include "channel/members.h"
#include "core.h"
#include "user/created_channels.h"
#include "user/presence_subscriptions.h"
#include "user/token_sweep.h"
#include "user/unread_frames.h"
#include "user/users.h"

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"
#include "chat/unstored_frame.h"
#include "unread/keys.h"

#include <string.h>

static void channel_on_event(struct gateway *gateway, const char *id, struct event *event)
{
    struct feed *feed = feed_find(gateway, id);
    if (feed && event->kind == EVENT_STRATEGY)
        unread_frames_refresh_all(feed, event);
    else if (feed && event->seq > 0 && strcmp(event->channel_id, id) == 0)
        feed_offer(feed, event);
}

void gateway_offer(struct gateway *gateway, struct event *const *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        channel_on_event(gateway, events[i]->channel_id, events[i]);
}

static void user_on_mark(struct gateway *gateway, struct user *user, struct event *event)
{
    if (event->unread_only) {
        unread_frames_refresh(gateway, event->channel_id, user->id);
        return;
    }
    focus_cursor_moved(gateway, event);
    held_marks_offer(gateway, user, event);
    unread_frames_on_mark(gateway, event, user->id);
}

static void user_on_event(struct gateway *gateway, const char *id, struct event *event)
{
    struct user *user = user_find(gateway, id);
    if (!user)
        return;
    if (event->kind == EVENT_JOIN && strcmp(event->user_id, id) == 0)
        members_joined(gateway, user, event->channel_id, event->seq, event);
    else if (event->kind == EVENT_MARK)
        user_on_mark(gateway, user, event);
    else if (event->kind == EVENT_CREATED)
        created_channels_send_user(gateway, user, event);
    else if (event->kind == EVENT_EPHEMERAL || event_kind_is_thread(event->kind))
        held_marks_offer(gateway, user, event);
}

static void event_on_topic(struct gateway *gateway, const char *topic, struct event *event)
{
    char id[EVENT_ID_SIZE];
    if (gateway_topic_id(topic, "channel-events", id))
        channel_on_event(gateway, id, event);
    else if (gateway_topic_id(topic, "user-events", id))
        user_on_event(gateway, id, event);
    else if (gateway_topic_id(topic, "workspace-events", id) && event->kind == EVENT_CREATED)
        created_channels_send_workspace(gateway, id, event);
}

// If it had a seq, its feed finds the gap and reads the event from Postgres.
static void event_not_understood(struct gateway *gateway, const char *topic, const char *reason)
{
    metric_add(METRIC_EVENTS_UNKNOWN, 1);
    if (log_is_due(&gateway->unknown_logged_ms))
        log_write(LOG_WARN, "gateway", "a message on %s is %s", topic, reason);
}

void dispatch_on_message(void *arg, const char *topic, const char *data, size_t length)
{
    char reason[EVENT_REASON_SIZE];
    struct event *event;
    struct gateway *gateway = CAST(gateway, arg);
    char id[EVENT_ID_SIZE];
    if (gateway_topic_id(topic, "presence-events", id)) {
        presence_subscriptions_send(gateway, id, data, length);
        return;
    }
    if (strcmp(topic, KEY_SESSION_TOPIC) == 0) {
        token_sweep_on_message(gateway, data, length);
        return;
    }
    if (length > 1 && data[0] == UNSTORED_FRAME_MARK) {
        ephemeral_receive(gateway, topic, data, length);
        return;
    }
    if (event_decode(data, length, &event, reason) < 0) {
        event_not_understood(gateway, topic, reason);
        return;
    }
    event_on_topic(gateway, topic, event);
    event_unref(event);
}
