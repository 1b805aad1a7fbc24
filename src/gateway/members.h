// SPDX-License-Identifier: Apache-2.0
// Checks who is in a channel, when joins and leaves may have been missed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event;
struct gateway;
struct loop_timer;
struct stream;
struct user;

struct members {
    bool timer_runs; // for young seats
    struct loop_timer *timer;
};

void members_check(struct stream *stream); // asks which of the users here are in the channel
void members_doubt(struct stream *stream); // the same; nothing is sent until that is known
void members_joined(struct gateway *gateway, struct user *user, const char *channel_id, int64_t seq,
                    struct event *event);
void members_sweep(struct gateway *gateway, bool young_only,
                   int64_t since_s);         // asks for recent joins of users here
void members_young(struct gateway *gateway); // there is a new stream or user: checks again soon
void members_on_timer(void *gateway);
