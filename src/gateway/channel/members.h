// SPDX-License-Identifier: Apache-2.0
// Checks who is in a channel, when joins and leaves may have been missed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event;
struct gateway;
struct feed;
struct feed_item;
struct user;

void members_on_join(struct feed *feed, const struct feed_item *item);
void members_on_leave(struct feed *feed, const struct feed_item *item);
void members_check(struct feed *feed); // asks which of the users here are in the channel
void members_joined(struct gateway *gateway, struct user *user, const char *channel_id, int64_t seq,
                    struct event *event);
// Asks for joins of the last `since_s` seconds of the users here, or of those who just came.
void members_sweep(struct gateway *gateway, bool unconfirmed_only, int64_t since_s);
void members_check_due(struct gateway *gateway); // asks again where there was no good answer
