// SPDX-License-Identifier: Apache-2.0
// Requests waiting for apps' events_url, in Postgres (sql/13_events_api.sql). All calls block; by
// one thread at a time.
#pragma once

#include "events_api_delivery.h"
#include "store/session.h"

// Stores events. Returns their number, or a negative error.
NODISCARD int queue_add(struct session *session, struct event *const *events, size_t count,
                        const struct events_api_options *options);

// Takes at most `most` requests that are due and appends them to `ready`. `under_way`: the caller's
// requests. Returns the number taken.
NODISCARD int queue_take(struct session *session, const struct list *under_way, int64_t most,
                         const struct events_api_options *options, struct list *ready);

// Stores the outcomes of `settled`.
NODISCARD int queue_settle(struct session *session, const struct list *settled);

// Appends the ids of all workspaces whose events are needed to `ids`: sorted, EVENT_ID_SIZE bytes
// each.
NODISCARD int queue_workspaces(struct session *session, struct buffer *ids);

// Deletes one batch of expired rows. 1: there may be more; 0: done.
NODISCARD int queue_clean(struct session *session, const struct events_api_options *options);
