// SPDX-License-Identifier: Apache-2.0
// Frames that only the user who joined or left a channel receives: channel_joined, channel_left …
#pragma once

#include <stdint.h>

struct feed;
struct user;

void join_frames_send(const struct feed *feed, const struct user *user); // the user joined
void join_frames_send_left(const struct feed *feed, const struct user *user, int64_t ts);
