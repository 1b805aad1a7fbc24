// SPDX-License-Identifier: Apache-2.0
// A loop's access to Redis: one non-blocking connection for commands and one for sharded pub/sub,
// on sockets of our own with hiredis' formatter and reader. Call everything on the loop's thread,
// except where noted; nothing blocks. A command is an argument vector, never a formatted string.
// While Redis is unavailable, calls fail with -ERROR_UNAVAILABLE, on the next turn. If a reply
// takes longer than `timeout_ms`, the connection is closed and reopened.
#pragma once

#include "base/cleanup.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

// What `redis_url` below must be and is not, as a text to follow "must be"; NULL if all is well.
const char *cache_url_problem(const char *redis_url);

struct cache_options {
    const char *redis_url;    // in a form of TIDINGS_REDIS_URL (docs/operations.md)
    const char *library;      // source of the function library; loaded into servers that lack it
    const char *library_name; // "tidings_<version>"; function names end with "_<version>"
    int64_t timeout_ms;
    // Limits for commands that await a reply, by number and bytes. At the limit, new commands fail
    // with -ERROR_BUSY.
    int pending_max;
    size_t pending_bytes;
};

// A reply, valid only inside the callback that received it.
struct cache_value;
bool cache_value_is_null(const struct cache_value *value);
int64_t cache_value_int(const struct cache_value *value); // integer, or text of one; otherwise 0
// Reads a non-negative integer, or text that consists of one. False if the value is neither.
bool cache_value_number(const struct cache_value *value, int64_t *ret_number);
const char *cache_value_text(const struct cache_value *value); // "" unless a string; NUL-terminated
size_t cache_value_length(const struct cache_value *value);    // length of a string in bytes
size_t cache_value_count(const struct cache_value *value);     // length of an array; otherwise 0
const struct cache_value *cache_value_at(const struct cache_value *value, size_t index);

// r: 0 with a value; -ERROR_UNAVAILABLE; -ERROR_BUSY; or -ERROR_INTERNAL: Redis returned an error,
// whose text is the value.
typedef void cache_fn(void *arg, int r, const struct cache_value *value);

NODISCARD int cache_new(struct loop *loop, const struct cache_options *options,
                        struct cache **ret_cache);
// Only after loop_run() has returned. First answers pending calls with -ERROR_UNAVAILABLE.
void cache_free(struct cache *cache);

// Sends one command. In an FCALL, name the function without the library's version. `fn` may be NULL
// (fire and forget); otherwise it is called exactly once, on a later turn. All commands of a turn
// are sent in one write at its end. `lengths` may be NULL if the texts are NUL-terminated.
void cache_call(struct cache *cache, int count, const char *const *texts, const size_t *lengths,
                cache_fn *fn, void *arg);

// Whether commands can be sent now: connected, with the library loaded. Any thread.
bool cache_is_up(const struct cache *cache);

// Pub/sub. Each topic has one subscription, however often it is subscribed to here, and one
// cache_unsubscribe() ends it. Subscriptions are renewed after a reconnect. `fn` receives each
// message; `topic` and `data` are valid only inside the call.
typedef void cache_message_fn(void *arg, const char *topic, const char *data, size_t length);
void cache_on_message(struct cache *cache, cache_message_fn *fn,
                      void *arg); // set once, before the first cache_subscribe()
void cache_subscribe(struct cache *cache, const char *topic);   // SSUBSCRIBE
void cache_unsubscribe(struct cache *cache, const char *topic); // SUNSUBSCRIBE

// Whether the pub/sub connection is up and, as far as known, all topics are subscribed.
bool cache_is_subscribed(const struct cache *cache);

// cache_subscriptions(): the number of SSUBSCRIBE requests sent so far, without renewals.
// cache_has_confirmed(): whether Redis has confirmed that many, so that later messages are
// received. Also true while Redis is unavailable, as no confirmation can come;
// cache_on_resubscribed() then reports the recovery. Each confirmation wakes the loop.
int64_t cache_subscriptions(const struct cache *cache);
bool cache_has_confirmed(const struct cache *cache, int64_t subscriptions);

// Calls `fn` each time the pub/sub connection has come up, again or for the first time, and all
// topics are subscribed. Messages published before may have been missed.
void cache_on_resubscribed(struct cache *cache, loop_fn *fn, void *arg);
