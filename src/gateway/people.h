// SPDX-License-Identifier: Apache-2.0
// Users and workspaces that have connections here, and their topics.
#pragma once

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct connection;
struct gateway;

// A user with sockets here.
struct user {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct workspace *workspace;
    struct list workspace_link;
    struct list connections;
    struct list held_marks; // see held_marks.c
    bool is_young;
    int64_t resumed_xid; // 0, or since when a young stream may not have heard marks
    bool manual_away;    // the user chose to be shown as away
    int64_t presence_ms; // when Redis was last told
};

struct workspace {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct list users;
};

NODISCARD int user_enter(struct connection *c);
void user_leave(struct connection *c);
void topic_follow(struct gateway *gateway, const char *topic, bool follow);
struct user *user_find(struct gateway *gateway, const char *id);
// Whether sockets get its frame that did not ask for Tidings' own.
bool event_is_for_all(const struct event *event);
// Sends to the user's connections what only the user gets.
void user_send(struct user *user, const struct event *event);
// Sends to those of the user's connections that asked for Tidings' own frames.
void user_send_native(struct gateway *gateway, const char *id, const char *frame, size_t length);
void people_on_created(struct gateway *gateway, struct event *event);
void people_on_message(struct gateway *gateway, const char *topic, struct event *event);

// The id in "kind:{id}"; false when the topic is of another kind. `ret_id` has EVENT_ID_SIZE bytes.
bool topic_id(const char *topic, const char *kind, char *ret_id);
