// SPDX-License-Identifier: Apache-2.0
// What a message of a topic brings, to channels, users and workspaces.
#include "dispatch.h"

#include "changed.h"
#include "core.h"
#include "created.h"
#include "ephemeral.h"
#include "focus.h"
#include "gateway_tokens.h"
#include "held_marks.h"
#include "members.h"
#include "stream.h"
#include "users.h"
#include "watch.h"

#include "base/log.h"
#include "base/metrics.h"
#include "unread/keys.h"

#include <string.h>

static void channel_on_event(struct gateway *gateway, const char *id, struct event *event)
{
    struct stream *stream = stream_find(gateway, id);
    if (stream && event->kind == EVENT_STRATEGY)
        changed_tell_all(stream, event);
    else if (stream && event->seq > 0 && strcmp(event->channel_id, id) == 0)
        stream_offer(stream, event);
}

void gateway_offer(struct gateway *gateway, struct event *const *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        channel_on_event(gateway, events[i]->channel_id, events[i]);
}

// What follows a mark.
static void user_on_mark(struct gateway *gateway, struct user *user, struct event *event)
{
    if (event->unread_only) {
        changed_hear(gateway, event->channel_id, user->id);
        return;
    }
    focus_cursor_moved(gateway, event);
    mark_offer(gateway, user, event);
    changed_marked(gateway, event, user->id);
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
        created_tell_user(gateway, user, event);
    else if (event->kind == EVENT_EPHEMERAL || event_kind_is_thread(event->kind))
        mark_offer(gateway, user, event);
}

static void event_on_topic(struct gateway *gateway, const char *topic, struct event *event)
{
    char id[EVENT_ID_SIZE];
    if (gateway_topic_id(topic, "channel-events", id))
        channel_on_event(gateway, id, event);
    else if (gateway_topic_id(topic, "user-events", id))
        user_on_event(gateway, id, event);
    else if (gateway_topic_id(topic, "workspace-events", id) && event->kind == EVENT_CREATED)
        created_tell_workspace(gateway, id, event);
}

// Where it had a seq, streams find the hole and read it from Postgres.
static void event_not_understood(struct gateway *gateway, const char *topic, const char *reason)
{
    metric_add(METRIC_EVENTS_UNKNOWN, 1);
    if (log_is_due(&gateway->unknown_told_ms))
        log_write(LOG_WARN, "gateway", "a message on %s is %s", topic, reason);
}

void dispatch_on_message(void *arg, const char *topic, const char *data, size_t length)
{
    char reason[EVENT_REASON_SIZE];
    struct event *event;
    char id[EVENT_ID_SIZE];
    if (gateway_topic_id(topic, "presence-events", id)) {
        watch_hear(arg, id, data, length);
        return;
    }
    if (strcmp(topic, KEY_SESSION_TOPIC) == 0) {
        tokens_hear(arg, data, length);
        return;
    }
    if (length > 1 && data[0] == '!') {
        ephemeral_hear(arg, topic, data, length);
        return;
    }
    if (event_decode(data, length, &event, reason) < 0) {
        event_not_understood(arg, topic, reason);
        return;
    }
    event_on_topic(arg, topic, event);
    event_unref(event);
}
