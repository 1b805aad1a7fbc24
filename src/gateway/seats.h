// SPDX-License-Identifier: Apache-2.0
// The connections that get a channel's events.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct gateway;
struct stream;
struct stream_item;
struct user;

// Gives a connection that has none a seat; it gets the events after `from_seq`. -ERROR_MEMORY.
NODISCARD int seats_add(struct stream *stream, struct connection *c, int64_t from_seq);
// The same for a connection whose list of channels was read when the channel's head was `seq`.
NODISCARD int seats_enter(struct stream *stream, struct connection *c, int64_t seq,
                          int64_t from_seq);
// Seats all connections of a user. False: all of them had a seat.
bool seats_add_user(struct stream *stream, struct user *user, int64_t from_seq);
// After the user's leave at `seq`: unseats their connections, except those whose list of channels
// was read after it.
void seats_remove_user(struct stream *stream, const struct user *user, int64_t seq);
void seats_leave(struct connection *c); // gives up all seats of a connection
bool seats_have(const struct stream *stream, const struct connection *c);
bool seats_have_user(const struct stream *stream, const struct user *user); // all its connections
void seats_send(struct stream *stream, const struct stream_item *item);
// Tells of a gap: events after stream->sent_seq.
void seats_send_gap(struct stream *stream, int64_t to_seq);
// A post from a socket here was acked.
void seats_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
                    const char *origin);
void seats_own_posts_trim(struct stream *stream); // those that were sent
