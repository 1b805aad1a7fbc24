// SPDX-License-Identifier: Apache-2.0
// Writes posts to Postgres in group commits; answers them after the commit and not before, and
// hands their events on at once. When the connection is lost during a commit, the outcome is
// unknown: the writer then looks for its batch before it answers or runs it again. One writer per
// loop; all on the loop's thread.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "chat/mentions.h"
#include "chat/message.h"
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
    bool is_duplicate;       // a message with this key existed already: ts and seq are its own
    const char *parent_user; // author of the thread's root, for a reply; "" otherwise
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
    const char *key;           // that makes a repeated post safe; NULL: none
    const char *digest;        // of the content, if there is a key
    const char *client_msg_id; // NULL: none
    const char *origin;        // the socket it came from, "" when none
    int64_t deadline_ms;       // set by writer_post
    bool
        is_checked; // its author is suspect, and it may be posted, as far as is known; the writer's
    post_fn *fn;
    void *arg;
};

// Whether it counts as unread: a reply does only where it is shown to the channel, too.
bool post_is_counted(const struct post *post);

// The message that the post becomes, with the post's own texts. `parent_user`: the author of the
// thread's root, "" when it is not known or there is none.
struct message post_message(const struct post *post, int64_t ts, int64_t seq,
                            const char *parent_user);

// Called with each committed outbox row and its events (count 0: they have to be read back).
typedef void writer_on_committed_fn(void *arg, const char *outbox_id, struct event *const *events,
                                    size_t count);
// Called with the same events, a turn of the loop before.
typedef void writer_on_local_fn(void *arg, struct event *const *events, size_t count);

struct writer_options {
    int batch_max;
    size_t batch_bytes; // a larger post is a batch of its own
    int queue_max;      // posts that wait
    size_t queue_bytes;
    // How long a post waits for a locked row, or is looked for when its commit may or may not have
    // happened, before its author is told to try again.
    int64_t wait_max_ms;
    writer_on_local_fn *on_local;
    writer_on_committed_fn *on_committed;
    void *arg;
};

NODISCARD int writer_new(struct loop *loop, struct store *store,
                         const struct writer_options *options, struct writer **ret_writer);
void writer_free(struct writer *writer);

// Answers all posts that are committed and still wait to be answered on a later turn, and, with
// -ERROR_UNAVAILABLE, those that wait for a locked row. To be called after the store was freed, and
// before anything is freed that the posts' functions need.
void writer_finish(struct writer *writer);

// Queues `post`. -ERROR_BUSY when the queue is full (fn is not called then).
NODISCARD int writer_post(struct writer *writer, struct post *post);

// How many posts wait or are being committed.
int writer_waiting(const struct writer *writer);
