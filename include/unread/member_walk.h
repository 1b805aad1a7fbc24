// SPDX-License-Identifier: Apache-2.0
// Applies the events of a round to what zset, counter and bitmap keep in Redis for each member. A
// walk goes over the members in chunks, in the order of their list in Redis. A chunk is one call,
// which takes effect as a whole, once, and only in its turn. A walk that does not reach its end,
// for whatever reason, leaves the channel's counts unknown, never wrong: nothing is tried again.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"
#include "store/session.h"

struct walker;

// `pipeline` and `session` stay the caller's. One walker per worker thread.
struct walker *walker_new(struct pipeline *pipeline, struct session *session);
void walker_free(struct walker *walker); // takes NULL

// Applies events of many channels, sorted by channel and seq.
void walker_run(struct walker *walker, struct event *const *events, size_t count);
