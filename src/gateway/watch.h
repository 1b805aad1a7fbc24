// SPDX-License-Identifier: Apache-2.0
// Sockets that asked to hear of others' presence.
#pragma once

#include "base/cleanup.h"
#include "base/list.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;
struct watch;

// One that may subscribe to the presence of users.
struct watcher {
    struct connection *connection;
    struct list asks; // its questions that are not answered yet
    struct watch **watches;
    uint32_t count;
    struct list due_link; // while one of them changed
    bool is_new;          // it was told of none of them yet
};

// The client's presence_sub or presence_query; `ids` as it sent them, or NULL.
void watch_ask(struct watcher *watcher, const json_t *ids, bool is_query);
void watch_init(struct watcher *watcher, struct connection *c);
void watch_forget(struct watcher *watcher); // its connection ends; may be called again
void watch_hear(struct gateway *gateway, const char *user_id, const char *word, size_t length);
void watch_refresh(struct gateway *gateway); // looks for entries that expired without a message
NODISCARD int watches_new(struct gateway *gateway);
void watches_free(struct gateway *gateway); // its connections are gone
