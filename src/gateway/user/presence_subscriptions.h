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
struct presence_subscription;

// One that may subscribe to the presence of users.
struct presence_subscriber {
    struct connection *connection;
    struct list asks; // its questions that are not answered yet
    struct presence_subscription **subscriptions;
    uint32_t count;
    struct list due_link; // while one of them changed
    bool is_new;          // it was told of none of them yet
};

// The client's presence_sub or presence_query; `ids` as it sent them, or NULL.
void presence_subscriber_ask(struct presence_subscriber *subscriber, const json_t *ids,
                             bool is_query);
void presence_subscriber_init(struct presence_subscriber *subscriber, struct connection *c);
void presence_subscriber_leave(
    struct presence_subscriber *subscriber); // its connection ends; may be called again
void presence_subscriptions_send(struct gateway *gateway, const char *user_id, const char *word,
                                 size_t length);
void presence_subscriptions_refresh(
    struct gateway *gateway); // looks for entries that expired without a message
NODISCARD int presence_subscriptions_new(struct gateway *gateway);
void presence_subscriptions_free(struct gateway *gateway); // its connections are gone
