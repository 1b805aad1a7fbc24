// SPDX-License-Identifier: Apache-2.0
// Users and workspaces that have connections here.
#pragma once

#include "base/actor.h"
#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct gateway;
struct packets;
struct params;

// A user with connections here.
struct user {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct workspace *workspace;
    struct list workspace_link;
    struct list connections;
    struct list held_marks; // see held_marks.c
    bool is_unconfirmed;
    int64_t resumed_xid; // 0, or since when a unconfirmed feed may not have heard marks
    bool manual_away;    // the user chose to be shown as away
    int64_t presence_ms; // when Redis was last told
};

struct workspace {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct list users;
};

// How many users one question to Postgres is about.
enum { USERS_SLICE = 500 };

struct user *user_find(struct gateway *gateway, const char *id);
struct user *user_make(struct gateway *gateway, const struct actor *actor); // or finds it; NULL
// Its last connection left: it is not found any more. The caller frees it.
void user_forget(struct gateway *gateway, struct user *user);
struct workspace *workspace_find(struct gateway *gateway, const char *id);
void users_params(const struct gateway *gateway, struct params *params); // an array of their ids

// Whether sockets get its frame that did not ask for Tidings' own.
bool event_is_for_all(const struct event *event);
// Sends to the user's connections what only the user gets.
void user_send(struct user *user, const struct event *event);
void user_send_packets(const struct user *user, struct packets *packets); // to all of them
// Sends to those of the user's connections that asked for Tidings' own frames.
void user_send_native(struct gateway *gateway, const char *id, const char *frame, size_t length);
void workspace_send(const struct workspace *workspace, const struct event *event);
