// SPDX-License-Identifier: Apache-2.0
// Channels that a client shows on screen: arriving messages are marked read.
#pragma once

#include "base/cleanup.h"
#include "events/event.h"

struct connection;
struct gateway;
struct feed;
struct feed_item;

NODISCARD int focuses_new(struct gateway *gateway);
void focuses_free(struct gateway *gateway); // may be called without focuses_new()
// The connection subscribes to the feed; `count` must live as long as the subscription.
// -ERROR_RATELIMITED: the limit of focused channels is reached; -ERROR_MEMORY.
NODISCARD int focus_begin(struct feed *feed, struct connection *c, int *count);
void focus_end(struct feed *feed, const struct connection *c); // if there is a focus
void focus_arrived(struct feed *feed, const struct feed_item *item);
void focus_cursor_moved(struct gateway *gateway, const struct event *event); // after EVENT_MARK
