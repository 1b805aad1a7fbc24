// SPDX-License-Identifier: Apache-2.0
// Keeps a feed's subscribers in step with the channel's members, also when joins or leaves were
// missed.
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
void members_check(struct feed *feed); // reads from Postgres which users here are members
// A join of the user from Postgres or their topic; `event` is its frame, or NULL.
void members_joined(struct gateway *gateway, struct user *user, const char *channel_id, int64_t seq,
                    struct event *event);
// Reads the joins of the last `since_s` seconds of the users here, or of unconfirmed ones only.
void members_sweep(struct gateway *gateway, bool unconfirmed_only, int64_t since_s);
void members_check_due(struct gateway *gateway); // repeats checks that failed
