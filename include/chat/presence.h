// SPDX-License-Identifier: Apache-2.0
// Who is connected, as Redis has it: `session:{U}:device` holds the gateways at which a user has
// connections, each until it has not been heard of for the TTL, and `presence:{U}` what is shown
// for it. Whenever that changes its word ("active", "away") goes to the topic presence-events:{U}.
// All on the cache's loop.
#pragma once

#include "cache/cache.h"

#include <stdbool.h>
#include <stdint.h>

enum presence_op {
    PRESENCE_ON,    // the device has `connections`
    PRESENCE_OFF,   // it has none any more
    PRESENCE_LOOK,  // only asks
    PRESENCE_MANUAL // the user's own choice changed to `manual_away`
};

struct presence_change {
    enum presence_op op;
    const char *user_id;
    const char *device; // "" with LOOK and MANUAL
    int64_t connections;
    int64_t ttl_s;
    bool manual_away; // as Postgres has it; used where Redis does not know
};

struct presence_state {
    bool is_active;
    bool manual_away;
    int64_t connections;
};

// r: 0, or -ERROR_UNAVAILABLE, -ERROR_BUSY, -ERROR_INTERNAL, -ERROR_MEMORY (state is NULL).
typedef void presence_fn(void *arg, int r, const struct presence_state *state);

// Makes the change. `fn` may be NULL; else it is called once, on a later turn (without memory
// inside the call). The change is not needed after the call.
void presence_apply(struct cache *cache, const struct presence_change *change, presence_fn *fn,
                    void *arg);

enum { PRESENCE_KEY_SIZE = 64 };
void presence_topic(char *ret_topic, const char *user_id); // PRESENCE_KEY_SIZE bytes
