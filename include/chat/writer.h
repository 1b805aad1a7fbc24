// SPDX-License-Identifier: Apache-2.0
// Commits posts to Postgres in group commits, replies only after the commit, and then passes the
// events on at once. If the connection is lost during a commit, the outcome is unknown: the writer
// looks the batch up before it replies or runs it again. One writer per loop; all on the loop's
// thread.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "chat/heat.h"
#include "chat/mentions.h"
#include "chat/message.h"
#include "events/event.h"
#include "store/batcher.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct writer;

struct post_outcome {
    int r; // 0, or why it was not posted: -ERROR_CHANNEL_NOT_FOUND, …, -ERROR_UNAVAILABLE (outcome
           // unknown: safe to retry with a key)
    int64_t ts;
    int64_t seq;
    bool is_duplicate;       // a message with this key already existed: ts and seq are its own
    const char *parent_user; // author of the thread's root, for a reply; "" otherwise
};
typedef void post_fn(void *arg, const struct post_outcome *outcome);

// One post. Owned by the caller, with everything it points to, until `fn` was called (once, on a
// later turn).
struct post {
    struct batch_item item; // must be first
    uint32_t tag;           // set by writer_post()
    const struct actor *actor;
    const char *channel_id;
    const char *text;
    size_t text_length;
    const char *extra; // compact JSON object; NULL: none
    const char *files; // ids of the files that it shares, "F1,F2", which are in `extra`; NULL: none
    struct mentions mentions;
    int64_t thread_ts; // 0: none
    bool broadcast;
    const char *key;           // idempotency key; NULL: none
    const char *digest;        // of the content, if there is a key
    const char *client_msg_id; // NULL: none
    const char *origin;        // the socket it was posted on; "": none
    bool is_checked;           // the writer's: suspect author, but checked and not refused so far
    post_fn *fn;
    void *arg;
};

// Whether the post counts as unread: replies do only if broadcast to the channel.
bool post_is_counted(const struct post *post);

// The message that results from the post; it points to the post's strings. `parent_user`: author of
// the thread's root, "" if unknown or none.
struct message post_message(const struct post *post, int64_t ts, int64_t seq,
                            const char *parent_user);

// Called with each committed outbox row and its events (count 0: they must be read back).
typedef void writer_on_committed_fn(void *arg, const char *outbox_id, struct event *const *events,
                                    size_t count);
// Called with the same events, one turn earlier.
typedef void writer_on_local_fn(void *arg, struct event *const *events, size_t count);

struct writer_options {
    int batch_max;
    size_t batch_bytes; // a larger post is committed alone
    int queue_max;      // maximum waiting posts
    size_t queue_bytes;
    // How long a post waits for a locked row, or is looked up while its outcome is unknown, before
    // its author gets -ERROR_UNAVAILABLE.
    int64_t wait_max_ms;
    const struct heat *heat;
    writer_on_local_fn *on_local;
    writer_on_committed_fn *on_committed;
    void *arg;
};

NODISCARD int writer_new(struct loop *loop, struct store *store,
                         const struct writer_options *options, struct writer **ret_writer);
void writer_free(struct writer *writer);

// Answers all posts that are committed but not answered yet; posts waiting for a locked row get
// -ERROR_UNAVAILABLE. Call it after freeing the store, and before freeing anything the posts'
// callbacks need.
void writer_finish(struct writer *writer);

// Queues `post`. -ERROR_BUSY: the queue is full; fn is not called.
NODISCARD int writer_post(struct writer *writer, struct post *post);

// Number of posts waiting or being committed.
int writer_waiting(const struct writer *writer);
