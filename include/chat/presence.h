// SPDX-License-Identifier: Apache-2.0
// Presence, in Redis: `session:{U}:device` holds the gateways at which a user has connections (a
// gateway that has not been heard of for the TTL no longer counts), and `presence:{U}` what is
// shown: "active" or "away". Each change of that is published on the topic presence-events:{U}. All
// on the cache's loop.
#pragma once

#include "cache/cache.h"

#include <stdbool.h>
#include <stdint.h>

enum presence_op {
    PRESENCE_ON,    // the device has `connections`
    PRESENCE_OFF,   // the device has none any more
    PRESENCE_LOOK,  // changes nothing, only asks
    PRESENCE_MANUAL // the user chose `manual_away`
};

struct presence_change {
    enum presence_op op;
    const char *user_id;
    const char *device; // "" with LOOK and MANUAL
    int64_t connections;
    int64_t ttl_s;
    bool manual_away; // as in Postgres; used if Redis does not know it
};

struct presence_state {
    bool is_active;
    bool manual_away;
    int64_t connections;
};

// r: 0, or -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_INTERNAL, -ERROR_MEMORY (state is NULL).
typedef void presence_fn(void *arg, int r, const struct presence_state *state);

// Makes the change. `fn` may be NULL; otherwise it is called once, on a later turn (from inside
// this call if there is no memory). `change` is not needed after the call.
void presence_apply(struct cache *cache, const struct presence_change *change, presence_fn *fn,
                    void *arg);

enum { PRESENCE_KEY_SIZE = 64 };
void presence_topic(char *ret_topic, const char *user_id); // PRESENCE_KEY_SIZE bytes

// The user said something on a socket, which counts as active for `active_s`; and it does no more.
void presence_speak(struct cache *cache, const char *user_id, const char *socket, int64_t active_s);
void presence_fall_silent(struct cache *cache, const char *user_id, const char *socket);

// The key of the gateways, and that of the sockets on which the user said something lately
// (`active:{U}`). Both are hashes whose values begin with the second at which an entry ends.
void presence_session_key(char *ret_key, const char *user_id); // likewise
void presence_active_key(char *ret_key, const char *user_id);  // likewise
