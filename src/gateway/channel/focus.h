// SPDX-License-Identifier: Apache-2.0
// Channels that a client has before its eyes: what arrives in them is marked read.
#pragma once

#include "base/cleanup.h"
#include "events/event.h"

struct connection;
struct gateway;
struct feed;
struct feed_item;

NODISCARD int focuses_new(struct gateway *gateway);
void focuses_free(struct gateway *gateway); // does nothing if there are none
// The connection has a subscriber in the feed; `count` stays for as long as it has.
// -ERROR_RATELIMITED: it focuses as many channels as it may; -ERROR_MEMORY.
NODISCARD int focus_begin(struct feed *feed, struct connection *c, int *count);
void focus_end(struct feed *feed, const struct connection *c); // does nothing if there is none
void focus_arrived(struct feed *feed, const struct feed_item *item);
void focus_cursor_moved(struct gateway *gateway, const struct event *event); // after EVENT_MARK
