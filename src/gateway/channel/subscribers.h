// SPDX-License-Identifier: Apache-2.0
// The connections that get a channel's events.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct gateway;
struct feed;
struct feed_item;
struct user;

// Gives a connection that has none a subscriber; it gets the events after `from_seq`.
// -ERROR_MEMORY.
NODISCARD int subscribers_add(struct feed *feed, struct connection *c, int64_t from_seq);
// The same for a connection whose list of channels was read when the channel's head was `seq`.
NODISCARD int subscribers_enter(struct feed *feed, struct connection *c, int64_t seq,
                                int64_t from_seq);
// Subscribes all connections of a user. False: all of them had a subscriber.
bool subscribers_add_user(struct feed *feed, struct user *user, int64_t from_seq);
// After the user's leave at `seq`: unsubscribes their connections, except those whose list of
// channels was read after it.
void subscribers_remove_user(struct feed *feed, const struct user *user, int64_t seq);
void subscribers_leave(struct connection *c); // gives up all subscribers of a connection
bool subscribers_have(const struct feed *feed, const struct connection *c);
bool subscribers_have_user(const struct feed *feed, const struct user *user); // all its connections
void subscribers_send(struct feed *feed, const struct feed_item *item);
// Tells of a gap: events after feed->sent_seq.
void subscribers_send_gap(struct feed *feed, int64_t to_seq);
// A post from a socket here was acked.
void subscribers_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
                          const char *origin);
void subscribers_own_posts_trim(struct feed *feed); // those that were sent
