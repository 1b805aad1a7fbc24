// SPDX-License-Identifier: Apache-2.0
// What events change in Redis, as commands for a pipeline: calls of the functions in
// lua/. Those check seq, epoch or count, so that a repeated or late call changes
// nothing.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"

// Adds the commands for `count` events. The events of a channel must be adjacent, in seq order as
// far as they arrived in order. Consecutive posts of a channel become one step of its head, and the
// heads of several channels one call. Worker threads.
void effects_add(struct pipeline *pipeline, struct event *const *events, size_t count);

// Adds the command for an event of a thread (event_kind_is_thread()); Redis keeps the result for
// `seconds`.
void effects_add_thread(struct pipeline *pipeline, const struct event *event, int64_t seconds);

// Adds commands that make unknown whatever effects_add() would have changed for `count` events of
// one channel: for when Redis refuses those changes.
void effects_forget(struct pipeline *pipeline, struct event *const *events, size_t count);
