// SPDX-License-Identifier: Apache-2.0
// What one event changes in Redis, as commands for a pipeline: calls of the functions in
// migrations/redis/. Every one is guarded there by seq, epoch or count, so repeating or delaying it
// changes nothing.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"

// Adds the commands for `count` events, those of a channel side by side and in seq order as far as
// they came in order. Consecutive posts of a channel are merged into one step of its head, and the
// heads of channels into one call. Worker threads.
void effects_add(struct pipeline *pipeline, struct event *const *events, size_t count);

// Adds the command for an event of a thread (event_kind_is_thread()); what it says is kept for
// `seconds`.
void effects_add_thread(struct pipeline *pipeline, const struct event *event, int64_t seconds);

// Adds the commands that make unknown whatever effects_add() would have changed, of `count` events
// of one channel: for when Redis does not take that.
void effects_forget(struct pipeline *pipeline, struct event *const *events, size_t count);
