// SPDX-License-Identifier: Apache-2.0
// The connections that receive a channel's events.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct feed;
struct feed_item;
struct gateway;
struct user;

// Subscribes a connection that is not subscribed, from after `from_seq`. -ERROR_MEMORY.
NODISCARD int subscribers_add(struct feed *feed, struct connection *c, int64_t from_seq);
// The same for a connection whose channels were read when the channel's head was `seq`.
NODISCARD int subscribers_enter(struct feed *feed, struct connection *c, int64_t seq,
                                int64_t from_seq);
// Subscribes all connections of a user. False: all were subscribed already.
bool subscribers_add_user(struct feed *feed, struct user *user, int64_t from_seq);
// After the user's leave at `seq`: unsubscribes their connections, except those whose channels were
// read after it.
void subscribers_remove_user(struct feed *feed, const struct user *user, int64_t seq);
void subscribers_leave(struct connection *c); // ends all subscriptions of the connection
bool subscribers_have(const struct feed *feed, const struct connection *c);
bool subscribers_have_user(const struct feed *feed, const struct user *user); // all connections
void subscribers_send(struct feed *feed, const struct feed_item *item);
// Sends the gap (feed->sent_seq, to_seq].
void subscribers_send_gap(struct feed *feed, int64_t to_seq);
// The post `seq` of socket `origin` was acked.
void subscribers_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
                          const char *origin);
void subscribers_own_posts_trim(struct feed *feed); // drops those that were sent
