// SPDX-License-Identifier: Apache-2.0
// Brings the events of a round to what channels of zset, counter and bitmap keep in Redis. Members
// are walked in chunks, in the order of their list in Redis; a chunk is one call that takes effect
// as a whole, once, and only in its turn. A walk that does not come to its end, for whatever
// reason, leaves the channel's counts unknown, never wrong: nothing is tried again.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"

struct walker;

// `pipeline` stays the caller's. One walker a worker thread.
NODISCARD int walker_new(struct pipeline *pipeline, const char *database_url,
                         int64_t statement_timeout_ms, struct walker **ret_walker);
void walker_free(struct walker *walker);

// Events of many channels, sorted by channel and seq.
void walker_run(struct walker *walker, struct event *const *events, size_t count);
