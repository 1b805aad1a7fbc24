// SPDX-License-Identifier: Apache-2.0
// Read positions: marks in group commits, markUnread one by one. Answered after the commit and,
// while Redis answers, after Redis has it; told to the user's other devices. One marker per loop;
// all on the loop's thread.
#pragma once

#include "base/actor.h"
#include "cache/cache.h"
#include "store/group.h"
#include "store/store.h"
#include "unread/view.h"

struct marker;

// r: 0 with the state after the mark, or -ERROR_CHANNEL_NOT_FOUND, -ERROR_NOT_IN_CHANNEL,
// -ERROR_UNAVAILABLE, …
typedef void mark_fn(void *arg, int r, const struct unread_view *view);

enum { MARK_ANY_EPOCH = -1 };

// One mark. Owned by the caller, with all it points to, until `fn` was called (once, on a later
// turn).
struct mark {
    struct group_item item; // first
    const struct actor *actor;
    const char *channel_id;
    int64_t ts;
    int64_t deadline_ms; // set by marker_mark
    const int64_t *tss;  // markMessages: these, and not ts
    int ts_count;
    int64_t epoch; // MARK_ANY_EPOCH, or the only one in which the mark counts
    mark_fn *fn;
    void *arg;
};

// Told of each outbox row whose effects are done already.
typedef void marker_done_fn(void *arg, const char *outbox_id);

NODISCARD int marker_new(struct loop *loop, struct store *store, struct cache *cache, int batch_max,
                         int queue_max, int singles_max, marker_done_fn *done, void *arg,
                         struct marker **ret_marker);
void marker_free(struct marker *marker);

// Queues `mark`. -ERROR_BUSY when the queue is full (fn is not called then).
NODISCARD int marker_mark(struct marker *marker, struct mark *mark);

// Begins a new epoch with the message at or after mark->ts as the first unread one. mark->epoch is
// not looked at.
void marker_mark_unread(struct marker *marker, struct mark *mark);

// Reads the messages of mark->tss one by one. mark->ts and ->epoch are not looked at.
// -ERROR_MESSAGE_NOT_FOUND, -ERROR_STRATEGY_UNSUPPORTED, -ERROR_TOO_MANY_READ_MESSAGES.
void marker_mark_messages(struct marker *marker, struct mark *mark);

int marker_waiting(const struct marker *marker);
