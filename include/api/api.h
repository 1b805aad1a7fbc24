// SPDX-License-Identifier: Apache-2.0
// The methods of the API: who calls, whether they may, and the method itself. One per loop; all on
// the loop's thread.
#pragma once

#include "base/loop.h"
#include "cache/cache.h"
#include "chat/writer.h"
#include "http/request.h"
#include "store/store.h"
#include "unread/marker.h"
#include "unread/reader.h"
#include "unread/sidebar.h"

struct api;

struct api_options {
    struct store *store;
    struct cache *cache;
    struct writer *writer;
    struct marker *marker;
    struct sidebar *sidebar;
    struct reader *reader;
    const char *public_url;     // "": from the Host header
    const char *operator_token; // "": none
    int64_t token_cache_ms;
    int64_t tokens_max;
    int64_t ticket_ms;
    int64_t start_max;   // entries of a list of rtm.start
    int64_t link_keep_s; // events for an app without a link
    int64_t text_max;
    int64_t presence_ttl_s;
    int64_t auto_limits[3];  // members: zset and counter at most, bitmap at least; 0: never
    int mentions_max;        // users that a message may mention
    int64_t rate_limit;      // calls a minute of a token to a method; 0: any number
    const char *rate_limits; // methods with others: "chat.postMessage=600,…"
    int64_t rate_channel;    // posts a minute to a channel; 0: any number
    int64_t rate_settle_ms;  // how soon Redis is told of calls
    int rate_buckets_max;
    int64_t objects_bytes; // in which channels are kept as they were shown
    int queue_max;         // calls of channels.info that may wait
    // Told of each change's outbox row, after its commit.
    void (*told)(void *arg, const char *outbox_id);
    void *arg;
};

// The options' parts and texts must outlive the api. writer, marker and cache may be NULL where
// only admin.* is called.
NODISCARD int api_new(struct loop *loop, const struct api_options *options, struct api **ret_api);
void api_free(struct api *api);

// Whether `rate_limits` can be read: 0, or -ERROR_INVALID_ARGUMENTS.
NODISCARD int api_limits_check(const char *text);

// Answers one request; `arg` is the api (a server_call_fn). A request whose actor has a type
// already is not asked for a token.
void api_call(void *arg, struct request *request);
