// SPDX-License-Identifier: Apache-2.0
// The relay's statements on the outbox. On the session's thread.
#pragma once

#include "base/cleanup.h"
#include "events/event.h"
#include "store/session.h"

enum { OUTBOX_BATCH_MAX = 500 };

// Finished rows. All-zero is empty.
struct outbox_batch {
    struct params own;    // to be deleted
    struct params polled; // to be marked as done: their writer may still look them up
    int own_count;
    int polled_count;
};
void outbox_batch_add(struct outbox_batch *batch, const char *outbox_id, bool polled);

// Deletes and marks the rows of `batch`, and empties it.
NODISCARD int outbox_clean(struct session *session, struct outbox_batch *batch);

// Ids of rows at least `age_ms` old, oldest first, at most `max`.
struct outbox_ids {
    struct result *result;
};
NODISCARD int outbox_leftovers(struct session *session, int64_t age_ms, int64_t max,
                               struct outbox_ids *ret_ids);
const char *outbox_ids_at(const struct outbox_ids *ids, int index);
void outbox_ids_done(struct outbox_ids *ids);
