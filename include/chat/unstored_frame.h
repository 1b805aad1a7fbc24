// SPDX-License-Identifier: Apache-2.0
// Frames that matter only at once and are not stored: user_typing, a user's manual presence, an
// opened or closed conversation, a new user. They reach the connections of a channel, a user or a
// workspace on all instances, through Redis only, on its topic: UNSTORED_FRAME_MARK and the JSON,
// {"type":…}. On the cache's loop.
#pragma once

#include "cache/cache.h"

#define UNSTORED_FRAME_MARK '!'

// Copies `json`. Without a cache, or memory, the frame is dropped.
void unstored_frame_publish(struct cache *cache, const char *topic, const char *json,
                            size_t length);
