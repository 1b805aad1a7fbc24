// SPDX-License-Identifier: Apache-2.0
// Frames for only the user who joined or left a channel.
#pragma once

#include <stdint.h>

struct stream;
struct user;

void joined_tell(const struct stream *stream, const struct user *user); // the user joined
void joined_tell_left(const struct stream *stream, const struct user *user, int64_t ts);
