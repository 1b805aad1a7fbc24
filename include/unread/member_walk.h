// SPDX-License-Identifier: Apache-2.0
// Applies a round's events to the per-member state of zset, counter and bitmap in Redis. A walk
// visits the members in chunks, in the order of their list in Redis. A chunk is one call; it takes
// effect atomically, once, and only in its turn. A walk that does not reach its end leaves the
// channel's counts unknown, never wrong; nothing is retried.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"
#include "store/session.h"

struct walker;

// `pipeline` and `session` stay the caller's. One walker per worker thread.
struct walker *walker_new(struct pipeline *pipeline, struct session *session);
void walker_free(struct walker *walker); // NULL is allowed

// Applies events of many channels, sorted by channel and seq.
void walker_run(struct walker *walker, struct event *const *events, size_t count);
