// SPDX-License-Identifier: Apache-2.0
// Translates events into their changes in Redis, as commands for a pipeline: calls of the functions
// in lua/. These check seq, epoch or count, so a repeated or late call changes nothing.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"

// Adds the commands for `count` events. Events of a channel must be adjacent, and in seq order as
// far as they arrived in order. Consecutive posts of a channel are merged into one step of its
// head, and heads of several channels into one call. Worker threads.
void effects_add(struct pipeline *pipeline, struct event *const *events, size_t count);

// Adds the command for a thread event (event_kind_is_thread()). Redis keeps the result for
// `seconds`.
void effects_add_thread(struct pipeline *pipeline, const struct event *event, int64_t seconds);

// Adds commands that invalidate whatever effects_add() would have changed for `count` events of one
// channel. Used when Redis rejects those changes.
void effects_forget(struct pipeline *pipeline, struct event *const *events, size_t count);
