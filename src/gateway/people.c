// SPDX-License-Identifier: Apache-2.0
// Users and workspaces with connections here: their topics, and what events of these topics bring.
#include "people.h"

#include "changed.h"
#include "connection.h"
#include "core.h"
#include "created.h"
#include "focus.h"
#include "held_marks.h"
#include "members.h"
#include "packet.h"
#include "presence.h"
#include "stream.h"
#include "watermark.h"

#include "base/error.h"
#include "base/metrics.h"
#include "unread/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void topic_follow(struct gateway *gateway, const char *topic, bool follow)
{
    if (gateway->ended)
        return;
    if (follow)
        cache_subscribe(gateway->cache, topic);
    else
        cache_unsubscribe(gateway->cache, topic);
}

static void workspace_follow(struct gateway *gateway, const struct workspace *workspace,
                             bool follow)
{
    char topic[KEY_SIZE];
    key_workspace_topic(topic, workspace->id);
    topic_follow(gateway, topic, follow);
}

static void user_follow(struct gateway *gateway, const struct user *user, bool follow)
{
    char topic[KEY_SIZE];
    key_user_topic(topic, user->id);
    topic_follow(gateway, topic, follow);
}

static struct workspace *workspace_enter(struct gateway *gateway, const char *id)
{
    struct workspace *workspace;
    HASH_FIND_STR(gateway->workspaces, id, workspace);
    if (workspace)
        return workspace;
    workspace = calloc(1, sizeof *workspace);
    if (!workspace)
        return NULL;
    snprintf(workspace->id, sizeof workspace->id, "%s", id);
    list_init(&workspace->users);
    HASH_ADD_STR(gateway->workspaces, id, workspace);
    workspace_follow(gateway, workspace, true);
    return workspace;
}

static void workspace_leave(struct gateway *gateway, struct workspace *workspace)
{
    if (!list_is_empty(&workspace->users))
        return;
    workspace_follow(gateway, workspace, false);
    HASH_DEL(gateway->workspaces, workspace);
    free(workspace);
}

struct user *user_find(struct gateway *gateway, const char *id)
{
    struct user *user;
    HASH_FIND_STR(gateway->users, id, user);
    return user;
}

static struct user *user_new(struct gateway *gateway, const struct actor *actor)
{
    struct user *user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->workspace = workspace_enter(gateway, actor->workspace_id);
    if (!user->workspace) {
        free(user);
        return NULL;
    }
    snprintf(user->id, sizeof user->id, "%s", actor->user_id);
    list_init(&user->connections);
    list_init(&user->held_marks);
    list_append(&user->workspace->users, &user->workspace_link);
    HASH_ADD_STR(gateway->users, id, user);
    user_follow(gateway, user, true);
    return user;
}

static void count_open(const struct connection *c, int change)
{
    if (c->ops->is_resumable)
        c->gateway->sse_count += change;
    if (c->gateway->sse_count == 0)
        watermark_forget(c->gateway);
    metric_add(c->ops->open_metric, change);
}

int user_enter(struct connection *c)
{
    struct user *user = user_find(c->gateway, c->actor.user_id);
    if (!user)
        user = user_new(c->gateway, &c->actor);
    if (!user)
        return -ERROR_MEMORY;
    c->user = user;
    list_append(&user->connections, &c->user_link);
    user->manual_away = c->manual_away;
    presence_enter(user, c->gateway);
    count_open(c, 1);
    user->is_young = true;
    members_young(c->gateway);
    return 0;
}

void user_leave(struct connection *c)
{
    struct gateway *gateway = c->gateway;
    struct user *user = c->user;
    c->user = NULL;
    count_open(c, -1);
    list_remove(&c->user_link);
    if (!list_is_empty(&user->connections)) {
        if (!gateway->ended)
            presence_enter(user, gateway);
        return;
    }
    marks_leave_user(user);
    user_follow(gateway, user, false);
    list_remove(&user->workspace_link);
    workspace_leave(gateway, user->workspace);
    HASH_DEL(gateway->users, user);
    presence_leave(user, gateway);
    free(user);
}

static bool frame_is(const struct event *event, const char *start)
{
    size_t length = strlen(start);
    return event->frame_length > length && memcmp(event->frame, start, length) == 0;
}

// Slack's clients take types that they do not know for errors: those go to sockets that asked for
// them.
bool event_is_for_all(const struct event *event)
{
    return event->kind == EVENT_CREATED || event->kind == EVENT_EPHEMERAL ||
           frame_is(event, "{\"type\":\"channel_marked\"") ||
           frame_is(event, "{\"type\":\"group_marked\"") ||
           frame_is(event, "{\"type\":\"im_marked\"") ||
           frame_is(event, "{\"type\":\"mpim_marked\"");
}

static void packets_send(struct user *user, const struct event *event, struct packets *packets)
{
    bool for_all = event_is_for_all(event);
    bool is_read = event->kind == EVENT_MARK || event_kind_is_thread(event->kind);
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if ((for_all || c->native) && !(is_read && connection_awaits(c, event)))
            connection_send(c, packets);
    }
}

void user_send(struct user *user, const struct event *event)
{
    CLEANUP(packets_done) struct packets packets = packets_of(event->frame, event->frame_length);
    packets_send(user, event, &packets);
}

void user_send_native(struct gateway *gateway, const char *id, const char *frame, size_t length)
{
    struct user *user = user_find(gateway, id);
    if (!user)
        return;
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (c->native)
            connection_send_text(c, frame, length);
    }
}

static void user_on_event(struct gateway *gateway, const char *id, struct event *event)
{
    struct user *user = user_find(gateway, id);
    if (!user)
        return;
    if (event->kind == EVENT_JOIN && strcmp(event->user_id, id) == 0) {
        members_joined(gateway, user, event->channel_id, event->seq, event);
        return;
    }
    if (event->kind != EVENT_MARK && event->kind != EVENT_CREATED &&
        event->kind != EVENT_EPHEMERAL && !event_kind_is_thread(event->kind))
        return;
    if (event->kind == EVENT_MARK && frame_is(event, "{\"type\":\"unread_changed\"")) {
        changed_hear(gateway, event->channel_id, id);
        return;
    }
    if (event->kind == EVENT_MARK)
        focus_cursor_moved(gateway, event);
    if (event->kind == EVENT_CREATED && !created_take(gateway, event->channel_id))
        return;
    mark_offer(gateway, user, event);
    if (event->kind == EVENT_MARK)
        changed_marked(gateway, event, id);
}

static void workspace_on_event(struct gateway *gateway, const char *id, const struct event *event)
{
    struct workspace *workspace;
    HASH_FIND_STR(gateway->workspaces, id, workspace);
    if (!workspace || event->kind != EVENT_CREATED || !created_take(gateway, event->channel_id))
        return;
    CLEANUP(packets_done) struct packets packets = packets_of(event->frame, event->frame_length);
    LIST_FOREACH(link, &workspace->users)
    {
        packets_send(LIST_ITEM(link, struct user, workspace_link), event, &packets);
    }
}

void people_on_created(struct gateway *gateway, struct event *event)
{
    if (event->is_private)
        user_on_event(gateway, event->user_id, event);
    else
        workspace_on_event(gateway, event->workspace_id, event);
}

bool topic_id(const char *topic, const char *kind, char *ret_id)
{
    size_t length = strlen(kind);
    if (strncmp(topic, kind, length) != 0 || strncmp(topic + length, ":{", 2) != 0)
        return false;
    size_t id_length = strcspn(topic + length + 2, "}");
    if (id_length >= EVENT_ID_SIZE)
        return false;
    memcpy(ret_id, topic + length + 2, id_length);
    ret_id[id_length] = '\0';
    return true;
}

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

void people_on_message(struct gateway *gateway, const char *topic, struct event *event)
{
    char id[EVENT_ID_SIZE];
    if (topic_id(topic, "channel-events", id))
        channel_on_event(gateway, id, event);
    else if (topic_id(topic, "user-events", id))
        user_on_event(gateway, id, event);
    else if (topic_id(topic, "workspace-events", id))
        workspace_on_event(gateway, id, event);
}
