// SPDX-License-Identifier: Apache-2.0
// What waits for the events_urls, in Postgres (sql/13_push.sql). Each call blocks; of one
// thread at a time.
#pragma once

#include "events_api_delivery.h"
#include "store/session.h"

// Keeps events; how many, or a negative error.
NODISCARD int queue_add(struct session *session, struct event *const *events, size_t count,
                        const struct events_api_options *options);

// Takes at most `most` requests that are due and appends them to `ready`; how many. `under_way` are
// those the caller has.
NODISCARD int queue_take(struct session *session, const struct list *under_way, int64_t most,
                         const struct events_api_options *options, struct list *ready);

// Tells what became of `settled`.
NODISCARD int queue_settle(struct session *session, const struct list *settled);

// The workspaces whose events are wanted: sorted, each EVENT_ID_SIZE bytes; appended to `ids`.
NODISCARD int queue_workspaces(struct session *session, struct buffer *ids);

// Drops what is kept no longer: a piece of it. 1 when there may be more, else 0.
NODISCARD int queue_clean(struct session *session, const struct events_api_options *options);
