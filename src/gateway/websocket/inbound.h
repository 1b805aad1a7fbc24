// SPDX-License-Identifier: Apache-2.0
// Handles a client's messages: posts, pings, and what it asks for.
#pragma once

#include "../user/presence_subscriptions.h"

#include "base/list.h"

#include <stddef.h>
#include <stdint.h>

struct connection;

// What a client has under way.
struct inbound {
    struct connection *connection;
    struct list calls; // of methods, in work
    int call_count;
    int focus_count;
    int64_t typed_ms;  // when it last sent user_typing
    int64_t active_ms; // when Redis was told last that it says something; 0: never
    struct presence_subscriber presence_subscriber;
};

void inbound_init(struct inbound *inbound, struct connection *c);
void inbound_message(struct inbound *inbound, const char *text, size_t length);
// The connection is gone: its calls' replies are dropped. May be called again.
void inbound_forget(struct inbound *inbound);
