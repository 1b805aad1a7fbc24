// SPDX-License-Identifier: Apache-2.0
// Moves read cursors: marks by group commit, markUnread and markMessages individually. Answers
// after the commit and, while Redis is up, after Redis has the new cursor, and notifies the user's
// other devices. One marker per loop; all on the loop's thread.
#pragma once

#include "base/actor.h"
#include "cache/cache.h"
#include "store/batcher.h"
#include "store/store.h"
#include "unread/view.h"

struct marker;

// r: 0 with the state after the mark, or -ERROR_CHANNEL_NOT_FOUND, -ERROR_NOT_IN_CHANNEL,
// -ERROR_UNAVAILABLE, …
typedef void mark_fn(void *arg, int r, const struct unread_view *view);

enum { MARK_ANY_EPOCH = -1 };

// One mark. Owned by the caller, with everything it points to, until `fn` was called (once, on a
// later turn).
struct mark {
    struct batch_item item; // must be first
    uint32_t tag;           // set by marker_mark()
    const struct actor *actor;
    const char *channel_id;
    int64_t ts;
    const int64_t *tss; // for markMessages, instead of ts
    int ts_count;
    int64_t epoch; // the only epoch in which the mark takes effect, or MARK_ANY_EPOCH
    mark_fn *fn;
    void *arg;
};

// Called with each outbox row whose effects are already done.
typedef void marker_on_settled_fn(void *arg, const char *outbox_id);

struct marker_options {
    int batch_max;   // marks per commit
    int queue_max;   // waiting marks
    int singles_max; // individually read messages per member
    marker_on_settled_fn *on_settled;
    void *arg;
};

// `store` and `cache` must outlive the marker.
NODISCARD int marker_new(struct loop *loop, struct store *store, struct cache *cache,
                         const struct marker_options *options, struct marker **ret_marker);
void marker_free(struct marker *marker);

// Answers marks that wait for a locked row with -ERROR_UNAVAILABLE. Call it after freeing the
// store, and before freeing anything the marks' callbacks need.
void marker_finish(struct marker *marker);

// Queues `mark`. -ERROR_BUSY: the queue is full; fn is not called.
NODISCARD int marker_mark(struct marker *marker, struct mark *mark);

// Begins a new epoch in which the message at or after mark->ts is the first unread one. Ignores
// mark->epoch.
void marker_mark_unread(struct marker *marker, struct mark *mark);

// Marks only the messages mark->tss as read. Ignores mark->ts and mark->epoch.
// -ERROR_MESSAGE_NOT_FOUND, -ERROR_STRATEGY_UNSUPPORTED, -ERROR_TOO_MANY_READ_MESSAGES.
void marker_mark_messages(struct marker *marker, struct mark *mark);

int marker_waiting(const struct marker *marker);
