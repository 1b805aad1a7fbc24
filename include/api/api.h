// SPDX-License-Identifier: Apache-2.0
// The methods of the API: authenticates the caller, checks permission, and runs the method. One api
// per loop; everything on the loop's thread.
#pragma once

#include "api/api_settings.h"
#include "base/loop.h"
#include "base/secrets.h"
#include "cache/cache.h"
#include "call/request.h"
#include "chat/writer.h"
#include "store/store.h"
#include "unread/marker.h"
#include "unread/reader.h"
#include "unread/sidebar.h"

struct api;
struct gateway;
struct notify;
struct storage;

struct api_options {
    struct api_settings settings;
    struct store *store;
    struct cache *cache;
    struct writer *writer;
    struct marker *marker;
    struct sidebar *sidebar;
    struct reader *reader;
    struct gateway *gateway;
    bool private_allowed;          // whether a device's URL may point to a private or local address
    struct notify *notify;         // sends pushes; NULL: sending disabled
    const struct secrets *secrets; // encrypt stored secrets
    const struct storage *storage; // of files; NULL: none
    int64_t app_socket_keep_s;     // how long events wait for an app without a socket
    int64_t presence_ttl_s;
    int64_t auto_limits[3]; // members: maximum for zset, counter; minimum for bitmap; 0: never
    int queue_max;          // maximum waiting calls of channels.info
    // Called after the commit of each change, with the id of its outbox row.
    void (*on_committed)(void *arg, const char *outbox_id);
    // Likewise for each further row of a change with many rows: these are relayed after all others.
    void (*on_committed_later)(void *arg, const char *outbox_id);
    // Called after the commit of a change that revokes or restores a token, before the reply, with
    // the id of the token, user or app. Every loop of every instance must be notified.
    void (*on_session_changed)(void *arg, const char *id);
    void *arg;
};

// Everything the options point to must outlive the api. writer, marker, gateway and cache may be
// NULL if only admin.* is called.
NODISCARD int api_new(struct loop *loop, const struct api_options *options, struct api **ret_api);
void api_free(struct api *api);

// Invalidates cached tokens: a token, user or app (NULL: any) may have changed.
void api_session_changed(struct api *api, const char *id);

// Validates `rate_limits`: 0, or -ERROR_INVALID_ARGUMENTS.
NODISCARD int api_limits_check(const char *text);

bool api_has_method(const char *name);

// Decides whether a request's body is accepted (a server_admit_fn): if the token is valid, and the
// user has not sent too much.
void api_admit(void *arg, struct request *request);

// Answers one request (a server_call_fn); `arg` is the api. A request whose actor is already set
// (its type is not 0) needs no token.
void api_call(void *arg, struct request *request);
