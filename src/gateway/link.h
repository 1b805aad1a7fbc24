// SPDX-License-Identifier: Apache-2.0
// Connections of apps (Socket Mode).
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct connection;
struct gateway;

// An app with links here.
struct app {
    UT_hash_handle hh;
    struct gateway *gateway;
    char id[EVENT_ID_SIZE];
    struct list links;     // its connections; the first is the next to get an envelope
    struct list envelopes; // sent by this gateway, or about to be, and not acked
    int envelope_count;
    char last_channel[EVENT_ID_SIZE]; // of the last event that was offered
    int64_t last_seq;                 // the same
    int64_t counted_ms;               // when Redis was last told of the links
};

void link_open(struct connection *c);  // the connection is open; hello follows
void link_leave(struct connection *c); // the connection ends; it need not be a link
void link_send(struct connection *c, const char *text, size_t length);
// Tells the app to close it; goes ahead of what is queued. `reason` is static text.
void link_disconnect(struct connection *c, const char *reason);
void link_tick(struct connection *c, int64_t now_ms);
void links_refresh(struct gateway *gateway);
struct app *app_find(struct gateway *gateway, const char *id);
