// SPDX-License-Identifier: Apache-2.0
// Whom posts concern is looked up for a whole stretch of a channel, from the first to the last post
// of a round. So of many posts no more than three are told.
#pragma once

#include "events/event.h"

// Keeps of the posts of each channel the first, the last, and one by another author than the
// first's, if there is any; and all other events. Moves them to the front of `events`, the posts
// first and by channel. How many they are. Any thread.
size_t post_stretches_keep(struct event **events, size_t count);
