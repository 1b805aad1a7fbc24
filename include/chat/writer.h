// SPDX-License-Identifier: Apache-2.0
// Posts: in group commits to Postgres, answered after the commit and not before, told to the log at
// once. A lost connection during a commit is an unknown outcome: the writer looks for its batch
// before it answers or runs it again. One writer per loop; all on the loop's thread.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "chat/mentions.h"
#include "events/event.h"
#include "store/group.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct writer;

struct post_outcome {
    int r; // 0, or why it was not posted: -ERROR_CHANNEL_NOT_FOUND, …, -ERROR_UNAVAILABLE (outcome
           // unknown: safe to repeat with a key)
    int64_t ts;
    int64_t seq;
    bool is_duplicate;       // a message of this key is there already: this is its ts
    const char *parent_user; // of a reply; "" else
};
typedef void post_fn(void *arg, const struct post_outcome *outcome);

// One post. Owned by the caller, with all it points to, until `fn` was called (once, on a later
// turn).
struct post {
    struct group_item item; // first
    const struct actor *actor;
    const char *channel_id;
    const char *text;
    size_t text_length;
    const char *extra; // compact JSON object, NULL when none
    struct mentions mentions;
    int64_t thread_ts; // 0: none
    bool broadcast;
    const char *key;           // NULL: not safe to repeat
    const char *digest;        // of the content, when there is a key
    const char *client_msg_id; // NULL: none
    const char *origin;        // the socket it came by, "" when none
    int64_t deadline_ms;       // set by writer_post
    post_fn *fn;
    void *arg;
};

// Told of each committed outbox row: `events` (count may be 0: to be read back).
typedef void writer_told_fn(void *arg, const char *outbox_id, struct event *const *events,
                            size_t count);

NODISCARD int writer_new(struct loop *loop, struct store *store, int batch_max, int queue_max,
                         writer_told_fn *told, void *arg, struct writer **ret_writer);
void writer_free(struct writer *writer);

// Answers all that is committed and waits for a later turn to be answered: before what the posts'
// functions need is freed, and after the store is.
void writer_finish(struct writer *writer);

// Queues `post`. -ERROR_BUSY when the queue is full (fn is not called then).
NODISCARD int writer_post(struct writer *writer, struct post *post);

// How many posts wait or are in work.
int writer_waiting(const struct writer *writer);
