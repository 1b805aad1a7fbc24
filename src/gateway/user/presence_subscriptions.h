// SPDX-License-Identifier: Apache-2.0
// Sockets' subscriptions to other users' presence (presence_sub, presence_query).
#pragma once

#include "base/cleanup.h"
#include "base/list.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;
struct presence_subscription;

// A socket that may subscribe.
struct presence_subscriber {
    struct connection *connection;
    struct list asks; // requests in progress
    struct presence_subscription **subscriptions;
    uint32_t count;
    struct list due_link; // while a subscription changed
    bool is_new;          // no state was sent yet
};

// Handles presence_sub or presence_query. `ids` as the client sent them, or NULL.
void presence_subscriber_ask(struct presence_subscriber *subscriber, const json_t *ids,
                             bool is_query);
void presence_subscriber_init(struct presence_subscriber *subscriber, struct connection *c);
// The connection ends; may be called again.
void presence_subscriber_leave(struct presence_subscriber *subscriber);
// A message of the user's presence topic: "active" or "away".
void presence_subscriptions_send(struct gateway *gateway, const char *user_id, const char *word,
                                 size_t length);
// Polls for entries that expired without a message.
void presence_subscriptions_refresh(struct gateway *gateway);
NODISCARD int presence_subscriptions_new(struct gateway *gateway);
void presence_subscriptions_free(struct gateway *gateway); // after its connections
