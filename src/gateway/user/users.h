// SPDX-License-Identifier: Apache-2.0
// Users and workspaces with connections on this gateway.
#pragma once

#include "base/actor.h"
#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct gateway;
struct packets;
struct params;

struct user {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct workspace *workspace;
    struct list workspace_link;
    struct list connections;
    struct list held_marks; // see held_marks.c
    bool is_unconfirmed;
    int64_t resumed_xid; // 0, or marks since then may be missing in an unconfirmed feed
    bool manual_away;    // the user chose to be shown as away
    int64_t presence_ms; // when Redis was last updated
};

struct workspace {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct list users;
};

// Users per statement.
enum { USERS_SLICE = 500 };

struct user *user_find(struct gateway *gateway, const char *id);
struct user *user_make(struct gateway *gateway,
                       const struct actor *actor); // or finds it; NULL: out of memory
// Its last connection left: user_find() no longer finds it. The caller frees it.
void user_forget(struct gateway *gateway, struct user *user);
struct workspace *workspace_find(struct gateway *gateway, const char *id);
void users_params(const struct gateway *gateway,
                  struct params *params); // appends an array of their ids

// Whether sockets that are not native receive the event's frame, too.
bool event_is_for_all(const struct event *event);
// Sends an event for this user only to the user's connections.
void user_send(struct user *user, const struct event *event);
void user_send_packets(const struct user *user, struct packets *packets); // to all connections
// Sends to the user's native connections.
void user_send_native(struct gateway *gateway, const char *id, const char *type,
                      const struct buffer *frame);
void workspace_send(const struct workspace *workspace, const struct event *event);
