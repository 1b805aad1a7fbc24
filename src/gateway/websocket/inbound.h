// SPDX-License-Identifier: Apache-2.0
// Handles a client's messages: posts, marks, pings, typing, focus, presence.
#pragma once

#include "../channel/focus.h"
#include "../user/presence_subscriptions.h"

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;

// A client's requests in progress, and when it was last active.
struct inbound {
    struct connection *connection;
    struct list calls; // method calls in progress
    int call_count;
    struct focus_set focuses;
    int64_t typed_ms;  // when its last user_typing was published
    bool is_told;      // that its token expires
    int64_t active_ms; // when its activity was last written to Redis; 0: never
    struct presence_subscriber presence_subscriber;
};

void inbound_init(struct inbound *inbound, struct connection *c);
void inbound_message(struct inbound *inbound, const char *text, size_t length);
// While OPEN, every CONNECTION_TICK_MS.
void inbound_tick(struct inbound *inbound, int64_t now_ms);
// The connection ends: drops the replies of its calls. May be called again.
void inbound_forget(struct inbound *inbound);
