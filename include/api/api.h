// SPDX-License-Identifier: Apache-2.0
// The methods of the API: finds out who calls and whether they may, and runs the method. One api
// per loop; everything on the loop's thread.
#pragma once

#include "base/loop.h"
#include "base/secrets.h"
#include "cache/cache.h"
#include "chat/writer.h"
#include "http/request.h"
#include "store/store.h"
#include "unread/marker.h"
#include "unread/reader.h"
#include "unread/sidebar.h"

struct api;
struct gateway;
struct notify;

struct api_options {
    struct store *store;
    struct cache *cache;
    struct writer *writer;
    struct marker *marker;
    struct sidebar *sidebar;
    struct reader *reader;
    struct gateway *gateway;
    const char *public_url;        // "": from the Host header
    const char *operator_token;    // "": none
    int64_t devices_max;           // of a user
    bool private_allowed;          // whether a device may be at a private or local address
    struct notify *notify;         // sends pushes; NULL: none are sent
    const struct secrets *secrets; // seal what is stored
    int64_t token_cache_ms;
    int64_t tokens_max;
    int64_t token_lookups_max; // at once
    int64_t ticket_ms;
    int64_t start_max;   // most entries of each list of rtm.start
    int64_t link_keep_s; // how long events wait for an app without a link
    int64_t text_max;
    int64_t presence_ttl_s;
    int64_t auto_limits[3];       // members: zset and counter at most, bitmap at least; 0: never
    int mentions_max;             // most users that a message may mention
    int64_t rate_limit;           // calls a minute of one token to one method; 0: no limit
    const char *rate_limits;      // methods with a limit of their own: "chat.postMessage=600,…"
    int64_t rate_channel;         // posts a minute to one channel; 0: no limit
    int64_t rate_bytes;           // bytes a minute of large bodies of one user; 0: no limit
    int64_t rate_strangers_bytes; // of all who call without a token
    int64_t rate_settle_ms;       // how soon calls are reported to Redis
    int rate_buckets_max;
    int64_t objects_bytes; // memory for channels as channels.info shows them
    int queue_max;         // most calls of channels.info that may wait
    // Called after each change's commit, with the id of its outbox row.
    void (*on_committed)(void *arg, const char *outbox_id);
    // The same of each further row of a change that has many: they are told of after all others.
    void (*on_committed_later)(void *arg, const char *outbox_id);
    // Called after the commit of what ends a token, or gives it back, before the reply: with the id
    // of the token, of the user or of the app. Every loop of every instance has to hear of it.
    void (*on_session_changed)(void *arg, const char *id);
    void *arg;
};

// What the options point to must outlive the api. writer, marker, gateway and cache may be NULL
// if only admin.* is called.
NODISCARD int api_new(struct loop *loop, const struct api_options *options, struct api **ret_api);
void api_free(struct api *api);

// Told of a token, a user or an app that may have changed (NULL: of any): what is known of it from
// before is no longer believed.
void api_session_doubt(struct api *api, const char *id);

// Whether `rate_limits` can be read: 0, or -ERROR_INVALID_ARGUMENTS.
NODISCARD int api_limits_check(const char *text);

bool api_has_method(const char *name);

// Whether the body of a call is let in (a server_admit_fn): when its token is good, and its user
// has not sent too much.
void api_admit(void *arg, struct request *request);

// Answers one request; `arg` is the api (a server_call_fn). A request whose actor is set already
// (its type is not 0) needs no token.
void api_call(void *arg, struct request *request);
