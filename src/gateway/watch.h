// SPDX-License-Identifier: Apache-2.0
// Sockets that asked to hear of others' presence.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct connection;
struct gateway;
struct loop_timer;
struct watch;

struct watching {
    struct watch *watches;
    bool timer_runs;
    struct loop_timer *timer;
};

// The client's presence_sub or presence_query; `ids` as it sent them, or NULL.
void watch_ask(struct connection *c, const json_t *ids, bool is_query);
void watch_forget(struct connection *c); // the connection ends
void watch_hear(struct gateway *gateway, const char *user_id, const char *word, size_t length);
void watch_refresh(struct gateway *gateway); // looks for entries that expired without a message
void watch_on_timer(void *gateway);
void watch_end(struct gateway *gateway); // the gateway is being freed, its connections are gone
