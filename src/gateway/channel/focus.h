// SPDX-License-Identifier: Apache-2.0
// Channels that a client shows on screen: arriving messages are marked read.
#pragma once

#include "base/cleanup.h"
#include "base/list.h"
#include "events/event.h"

struct connection;
struct gateway;
struct feed;
struct feed_item;

// The focuses of one connection.
struct focus_set {
    struct connection *connection;
    struct list list;
    struct list due_link; // in gateway->focuses->due while something waits for its second
    int count;
    bool ping_due; // messages were written that no ping has followed
    int64_t pinged_ms;
};

NODISCARD int focuses_new(struct gateway *gateway);
void focuses_free(struct gateway *gateway); // may be called without focuses_new()

void focus_set_init(struct focus_set *set, struct connection *c);
void focus_set_flushed(struct focus_set *set);  // the connection's queue was written
void focus_set_answered(struct focus_set *set); // the client has sent something

// r: 0, -ERROR_CHANNEL_NOT_FOUND: the user is no member, or -ERROR_UNAVAILABLE, …
typedef void focus_fn(void *arg, int r);
// The connection subscribes to the feed; `set` is its own and must live as long as the
// subscription. Begins anew if there is a focus already. `fn` is called on a later turn, once the
// focus has begun or failed, even if it has ended by then. After an error `fn` is not called:
// -ERROR_MISSING_SCOPE; -ERROR_RATELIMITED: the limit of focused channels is reached;
// -ERROR_MEMORY.
NODISCARD int focus_begin(struct feed *feed, struct focus_set *set, focus_fn *fn, void *arg);
void focus_end(struct feed *feed, const struct connection *c); // if there is a focus
void focus_arrived(struct feed *feed, const struct feed_item *item);
void focus_cursor_moved(struct gateway *gateway, const struct event *event); // after EVENT_MARK
