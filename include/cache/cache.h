// SPDX-License-Identifier: Apache-2.0
// Redis as a loop sees it: one non-blocking connection for commands and one for sharded pub/sub,
// made with hiredis' formatter and reader on sockets of our own. Everything is called on the loop's
// thread and never blocks. A command is an argument vector, never a formatted string. While Redis
// is away every call is answered -ERROR_UNAVAILABLE at once. If an answer takes longer than
// `timeout_ms`, the connection is closed and made anew.
#pragma once

#include "base/cleanup.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

// Whether the text has the form of `redis_url` below.
bool cache_url_is_valid(const char *redis_url);

struct cache_options {
    const char *redis_url; // redis://[user:password@]host:port[/db] or unix:///path
    const char
        *library; // source of the function library, loaded whenever a server without it is met
    const char *library_name; // "tidings_<version>"; each of its functions ends with "_<version>"
    int64_t timeout_ms;
    // While so many commands, or bytes of them, wait for an answer, more are refused with
    // -ERROR_BUSY.
    int pending_max;
    size_t pending_bytes;
};

// An answer of Redis, valid only inside the callback that got it.
struct cache_value;
bool cache_value_is_null(const struct cache_value *value);
int64_t cache_value_int(const struct cache_value *value); // integer, or text that is one; else 0
// Whether it is a whole number, 0 or more, as integer or as text of nothing else.
bool cache_value_number(const struct cache_value *value, int64_t *ret_number);
const char *cache_value_text(const struct cache_value *value); // "" unless a string; NUL-terminated
size_t cache_value_length(const struct cache_value *value);    // bytes of a string
size_t cache_value_count(const struct cache_value *value);     // elements of an array, else 0
const struct cache_value *cache_value_at(const struct cache_value *value, size_t index);

// r: 0 with a value; -ERROR_UNAVAILABLE, -ERROR_BUSY, or -ERROR_INTERNAL (Redis answered with an
// error: value is its text).
typedef void cache_fn(void *arg, int r, const struct cache_value *value);

NODISCARD int cache_new(struct loop *loop, const struct cache_options *options,
                        struct cache **ret_cache);
// Only after loop_run() returned. Calls still waiting are answered -ERROR_UNAVAILABLE first.
void cache_free(struct cache *cache);

// Sends one command; in an FCALL the function goes by its name without the version of the library.
// `fn` may be NULL (fire and forget); else it is called exactly once, on a later
// turn. All commands of a turn go out in one write at its end. lengths may be NULL (texts are then
// NUL-terminated).
void cache_call(struct cache *cache, int count, const char *const *texts, const size_t *lengths,
                cache_fn *fn, void *arg);

// Whether commands can be sent now: connected, library loaded. Any thread.
bool cache_is_up(const struct cache *cache);

// Pub/sub. A topic has one subscription, however often it is subscribed to here, and one
// cache_unsubscribe() ends it. Subscriptions are renewed after a reconnect. `fn` gets each message;
// `topic` and `data` are valid only inside the call.
typedef void cache_message_fn(void *arg, const char *topic, const char *data, size_t length);
void cache_on_message(struct cache *cache, cache_message_fn *fn,
                      void *arg);                               // set once, before subscribing
void cache_subscribe(struct cache *cache, const char *topic);   // SSUBSCRIBE
void cache_unsubscribe(struct cache *cache, const char *topic); // SUNSUBSCRIBE

// Whether the pub/sub connection is up and, as far as is known now, all topics are subscribed.
bool cache_is_subscribed(const struct cache *cache);

// How many subscriptions were asked for until now; and whether Redis has confirmed that many, so
// that what is published from now on is heard. While it is away there is nothing to wait for:
// cache_on_resubscribed() tells when there is. Each answer of Redis makes a turn of the loop.
int64_t cache_subscriptions(const struct cache *cache);
bool cache_has_confirmed(const struct cache *cache, int64_t subscriptions);

// Calls `fn` whenever the pub/sub connection has come (back) up and all topics are subscribed:
// messages may have been missed until now.
void cache_on_resubscribed(struct cache *cache, loop_fn *fn, void *arg);
