// SPDX-License-Identifier: Apache-2.0
#include "gateway_int.h"

#include "base/error.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOPIC_SIZE = 64 };

void topic_follow(struct gateway *gateway, const char *kind, const char *id, bool follow)
{
    char topic[TOPIC_SIZE];
    if (gateway->ended)
        return;
    (void)snprintf(topic, sizeof topic, "%s:%s", kind, id);
    if (follow)
        cache_subscribe(gateway->cache, topic);
    else
        cache_unsubscribe(gateway->cache, topic);
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
    (void)snprintf(workspace->id, sizeof workspace->id, "%s", id);
    list_init(&workspace->users);
    HASH_ADD_STR(gateway->workspaces, id, workspace);
    topic_follow(gateway, "workspace-events", id, true);
    return workspace;
}

static void workspace_leave(struct gateway *gateway, struct workspace *workspace)
{
    if (!list_is_empty(&workspace->users))
        return;
    topic_follow(gateway, "workspace-events", workspace->id, false);
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
    (void)snprintf(user->id, sizeof user->id, "%s", actor->user_id);
    list_init(&user->connections);
    list_append(&user->workspace->users, &user->workspace_link);
    HASH_ADD_STR(gateway->users, id, user);
    topic_follow(gateway, "user-events", user->id, true);
    return user;
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
    metric_add(METRIC_SOCKETS_OPEN, 1);
    user->is_young = true;
    members_young(c->gateway);
    return 0;
}

void user_leave(struct connection *c)
{
    struct gateway *gateway = c->gateway;
    struct user *user = c->user;
    c->user = NULL;
    metric_add(METRIC_SOCKETS_OPEN, -1);
    list_remove(&c->user_link);
    if (!list_is_empty(&user->connections))
        return;
    topic_follow(gateway, "user-events", user->id, false);
    list_remove(&user->workspace_link);
    workspace_leave(gateway, user->workspace);
    HASH_DEL(gateway->users, user);
    free(user);
}

// Slack's clients take types that they do not know for errors: those go to sockets that asked for
// them.
static bool frame_is_for_all(const struct event *event)
{
    static const char marked[] = "{\"type\":\"channel_marked\"";
    return event->kind != EVENT_MARK || (event->frame_length > sizeof marked &&
                                         memcmp(event->frame, marked, sizeof marked - 1) == 0);
}

static void user_send(struct user *user, const struct event *event, struct packet *packet)
{
    bool for_all = frame_is_for_all(event);
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (for_all || c->native)
            connection_send(c, packet);
    }
}

static void user_on_event(struct gateway *gateway, const char *id, struct event *event)
{
    struct user *user = user_find(gateway, id);
    if (!user)
        return;
    if (event->kind == EVENT_JOIN && strcmp(event->user_id, id) == 0)
        return members_joined(gateway, user, event->channel_id, event->seq, event);
    if (event->kind != EVENT_MARK && event->kind != EVENT_CREATED)
        return;
    struct packet *packet = packet_new(event->frame, event->frame_length);
    if (packet)
        user_send(user, event, packet);
    packet_unref(packet);
}

static void workspace_on_event(struct gateway *gateway, const char *id, const struct event *event)
{
    struct workspace *workspace;
    HASH_FIND_STR(gateway->workspaces, id, workspace);
    if (!workspace || event->kind != EVENT_CREATED)
        return;
    struct packet *packet = packet_new(event->frame, event->frame_length);
    if (!packet)
        return;
    LIST_FOREACH(link, &workspace->users)
    {
        user_send(LIST_ITEM(link, struct user, workspace_link), event, packet);
    }
    packet_unref(packet);
}

// What follows `kind` and a colon in `topic`; NULL when it is of another kind.
static const char *topic_id(const char *topic, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(topic, kind, length) == 0 && topic[length] == ':' ? topic + length + 1 : NULL;
}

void people_on_message(struct gateway *gateway, const char *topic, struct event *event)
{
    const char *channel = topic_id(topic, "channel-events");
    const char *user = topic_id(topic, "user-events");
    const char *workspace = topic_id(topic, "workspace-events");
    if (user)
        return user_on_event(gateway, user, event);
    if (workspace)
        return workspace_on_event(gateway, workspace, event);
    struct stream *stream = channel ? stream_find(gateway, channel) : NULL;
    if (stream && event->seq > 0 && strcmp(event->channel_id, channel) == 0)
        stream_offer(stream, event);
}
