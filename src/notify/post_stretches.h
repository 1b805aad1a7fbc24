// SPDX-License-Identifier: Apache-2.0
// Reduces the posts of a round to those that Postgres needs: recipients are looked up for a whole
// stretch of a channel, from the first to the last post, so at most three posts per channel
// suffice.
#pragma once

#include "events/event.h"

// Keeps of each channel's posts the first, the last, and one by a different author than the first,
// if any; and all other events. Moves them to the front of `events`, posts first, grouped by
// channel. Returns their number. Any thread.
size_t post_stretches_reduce(struct event **events, size_t count);
