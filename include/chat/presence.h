// SPDX-License-Identifier: Apache-2.0
// Presence, in Redis. `session:{U}:device` holds the gateways that have connections of a user; an
// entry expires unless its gateway renews it within the TTL. `presence:{U}` holds the state shown,
// "active" or "away". Each change is published on the topic presence-events:{U}. On the cache's
// loop.
#pragma once

#include "cache/cache.h"

#include <stdbool.h>
#include <stdint.h>

enum presence_op {
    PRESENCE_ON,    // the device has `connections`
    PRESENCE_OFF,   // the device has none left
    PRESENCE_LOOK,  // read only
    PRESENCE_MANUAL // the user has set `manual_away`
};

struct presence_change {
    enum presence_op op;
    const char *user_id;
    const char *device; // the gateway; "" with LOOK and MANUAL
    int64_t connections;
    int64_t ttl_s;
    bool manual_away; // as in Postgres; used if unknown to Redis
};

struct presence_state {
    bool is_active;
    bool manual_away;
    int64_t connections;
};

// r: 0, or -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_INTERNAL, -ERROR_MEMORY; `state` is then NULL.
typedef void presence_fn(void *arg, int r, const struct presence_state *state);

// Applies the change. `fn` may be NULL; otherwise it is called once, on a later turn (inside this
// call if out of memory). `change` is not used after the call.
void presence_apply(struct cache *cache, const struct presence_change *change, presence_fn *fn,
                    void *arg);

enum { PRESENCE_KEY_SIZE = 64 };
void presence_topic(char *ret_topic, const char *user_id); // PRESENCE_KEY_SIZE bytes

// Records that the user was active on a socket, for the next `active_s` seconds; fall_silent
// removes the record.
void presence_speak(struct cache *cache, const char *user_id, const char *socket, int64_t active_s);
void presence_fall_silent(struct cache *cache, const char *user_id, const char *socket);

// The keys of the gateways, and of the sockets with recent activity (`active:{U}`). Both are
// hashes; each value begins with the second its entry expires.
void presence_session_key(char *ret_key, const char *user_id); // PRESENCE_KEY_SIZE bytes
void presence_active_key(char *ret_key, const char *user_id);  // PRESENCE_KEY_SIZE bytes
