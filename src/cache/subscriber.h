// SPDX-License-Identifier: Apache-2.0
// The pub/sub half of a cache: one connection, its topics, and pings that detect a dead connection.
#pragma once

#include "cache/cache.h"
#include "url.h"

struct subscriber;

NODISCARD int subscriber_new(struct loop *loop, const struct url *url, int64_t connect_timeout_ms,
                             struct subscriber **ret_subscriber);
void subscriber_free(struct subscriber *subscriber); // accepts NULL
void subscriber_flush(struct subscriber *subscriber);

void subscriber_on_message(struct subscriber *subscriber, cache_message_fn *fn, void *arg);
void subscriber_on_resubscribed(struct subscriber *subscriber, loop_fn *fn, void *arg);
void subscriber_add(struct subscriber *subscriber, const char *topic);
void subscriber_remove(struct subscriber *subscriber, const char *topic);

// Whether it is connected and has renewed all subscriptions.
bool subscriber_is_settled(const struct subscriber *subscriber);

// The number of subscriptions sent; and whether that many are confirmed, or Redis is unavailable.
int64_t subscriber_asked(const struct subscriber *subscriber);
bool subscriber_has_confirmed(const struct subscriber *subscriber, int64_t asked);
