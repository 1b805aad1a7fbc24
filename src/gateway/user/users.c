// SPDX-License-Identifier: Apache-2.0
// Users and workspaces with connections here: their topics, and what is sent to all of a user's
// connections.
#include "users.h"

#include "../connection/connection.h"
#include "../connection/packet.h"
#include "../core.h"

#include "events/event_type.h"
#include "unread/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void workspace_subscribe(struct gateway *gateway, const struct workspace *workspace,
                                bool subscribe)
{
    char topic[KEY_SIZE];
    key_workspace_topic(topic, workspace->id);
    gateway_subscribe(gateway, topic, subscribe);
}

static void user_subscribe(struct gateway *gateway, const struct user *user, bool subscribe)
{
    char topic[KEY_SIZE];
    key_user_topic(topic, user->id);
    gateway_subscribe(gateway, topic, subscribe);
}

struct workspace *workspace_find(struct gateway *gateway, const char *id)
{
    struct workspace *workspace;
    HASH_FIND_STR(gateway->workspaces, id, workspace);
    return workspace;
}

static struct workspace *workspace_enter(struct gateway *gateway, const char *id)
{
    struct workspace *workspace = workspace_find(gateway, id);
    if (workspace)
        return workspace;
    workspace = calloc(1, sizeof *workspace);
    if (!workspace)
        return NULL;
    snprintf(workspace->id, sizeof workspace->id, "%s", id);
    list_init(&workspace->users);
    HASH_ADD_STR(gateway->workspaces, id, workspace);
    workspace_subscribe(gateway, workspace, true);
    return workspace;
}

static void workspace_leave(struct gateway *gateway, struct workspace *workspace)
{
    if (!list_is_empty(&workspace->users))
        return;
    workspace_subscribe(gateway, workspace, false);
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
    user_subscribe(gateway, user, true);
    return user;
}

struct user *user_make(struct gateway *gateway, const struct actor *actor)
{
    struct user *user = user_find(gateway, actor->user_id);
    return user ? user : user_new(gateway, actor);
}

void user_forget(struct gateway *gateway, struct user *user)
{
    user_subscribe(gateway, user, false);
    list_remove(&user->workspace_link);
    workspace_leave(gateway, user->workspace);
    HASH_DEL(gateway->users, user);
}

void users_params(const struct gateway *gateway, struct params *params)
{
    params_open_text_array(params);
    for (const struct user *user = gateway->users; user; user = user->hh.next)
        params_element_text(params, user->id);
    params_close_array(params);
}

// Slack's clients treat unknown types as errors: such frames are sent to native sockets only.
bool event_is_for_all(const struct event *event)
{
    return event->kind == EVENT_CREATED || event->kind == EVENT_EPHEMERAL ||
           (event->kind == EVENT_MARK && !event->unread_only);
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
    CLEANUP(packets_done)
    struct packets packets = packets_of(event_type_of(event), event->frame, event->frame_length);
    packets_send(user, event, &packets);
}

void user_send_packets(const struct user *user, struct packets *packets)
{
    LIST_FOREACH(link, &user->connections)
    {
        connection_send(LIST_ITEM(link, struct connection, user_link), packets);
    }
}

void workspace_send(const struct workspace *workspace, const struct event *event)
{
    CLEANUP(packets_done)
    struct packets packets = packets_of(event_type_of(event), event->frame, event->frame_length);
    LIST_FOREACH(link, &workspace->users)
    {
        packets_send(LIST_ITEM(link, struct user, workspace_link), event, &packets);
    }
}

void user_send_native(struct gateway *gateway, const char *id, const char *type,
                      const struct buffer *frame)
{
    struct user *user = user_find(gateway, id);
    if (!user)
        return;
    LIST_FOREACH(link, &user->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, user_link);
        if (c->native)
            connection_send_text(c, type, frame->data, frame->length);
    }
}
