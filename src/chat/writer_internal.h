// SPDX-License-Identifier: Apache-2.0
// The writer's structs, shared by its files: writer.c, writer_check.c and writer_params.c, each of
// which uses only those after it.
#pragma once

#include "batch_plan.h"
#include "publication.h"

#include "base/check.h"
#include "base/id.h"
#include "chat/writer.h"
#include "store/batcher.h"

// The columns of post_batch()'s reply: one array each, with a value per channel. START_ORD is the
// ord before the batch.
enum batch_start { START_TS, START_SEQ, START_ORD, START_TRAITS, START_KINDS };

// The rows of a post that may be locked, as returned by post_locked(): its channel's, or the
// author's membership in it.
enum locked { LOCKED_NOT, LOCKED_CHANNEL, LOCKED_MEMBER };

// What the writer keeps with a batch.
struct post_batch {
    uint32_t tag;
    struct writer *writer;
    struct batch *batch;
    char id[OUTBOX_ID_SIZE];
    struct batch_plan plan;         // made when the batch is sent
    int64_t *starts[START_KINDS];   // per channel; valid after the commit
    char (*parents)[EVENT_ID_SIZE]; // per post, the author of the thread's root; valid after the
                                    // commit
    int answered;                   // posts answered so far; valid after the commit
    struct loop_timer
        *recheck_timer;    // retries the lookup while the outcome of the commit is unknown
    int64_t find_until_ms; // when the lookup gives up
};

// Authors with a recently refused post.
struct suspects {
    struct suspect *by_user; // uthash, oldest entry first
    struct list posts;       // their posts, to be checked in the batcher's own batch
    int waiting;             // posts, including those being checked
    struct loop_timer *timer;
};

struct writer {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    struct batcher *batcher;
    struct suspects suspects;
    int64_t hot_until_ms; // until when other instances may have made channels hot
    struct writer_options options;
    char name[ID_SIZE]; // unique to this writer; prefix of its batches' ids
    uint64_t batch_number;
    struct post_batch *batches;   // one per batch of the batcher
    struct post_batch *answering; // the batch committed last; NULL once answered
    struct publication publication;
    struct post **gathered; // the posts of the batch that is being sent
};

static inline struct post *post_of(const struct batch *batch, int index)
{
    return CAST(post, batch->items[index]);
}

static inline struct post_batch *post_batch_of(const struct batch *batch)
{
    const struct writer *writer = CAST(writer, batcher_arg(batch->batcher));

    return &writer->batches[batch->number];
}

static inline void post_fail(const struct post *post, int r)
{
    post->fn(post->arg, &(struct post_outcome){.r = r, .parent_user = ""});
}

// Answers one post of the batch.
static inline void batch_post_answer(struct batch *batch, int index,
                                     const struct post_outcome *outcome)
{
    struct post *post = post_of(batch, index);

    batch->items[index] = NULL;
    post->fn(post->arg, outcome);
}

// writer_check.c: refused posts. Answers the posts of a batch that are not allowed or are
// duplicates, and runs the others again.
void writer_check(struct batch *batch);

// Sets the post aside to be checked first if its author is suspect. False: not suspect.
bool writer_joins_suspects(struct writer *writer, struct post *post);

NODISCARD int writer_suspects_new(struct writer *writer);
void writer_suspects_finish(struct writer *writer); // answers waiting posts with -ERROR_UNAVAILABLE
void writer_suspects_free(struct writer *writer);

// writer_params.c: the statements and their parameters. post_batch(), or post_one() where it
// suffices, for a batch with a plan:
const struct statement *post_batch_params(struct params *params, const struct post_batch *posted);
const struct statement *writer_check_params(struct params *params, const struct batch *batch);
const struct statement *writer_locked_params(struct params *params, const struct batch *batch);

// Tells post_batch() about hot channels (docs/decisions/2026-11-23-hot-channels.md): 0, there are
// none; 1, there may be; 2, there may be, and busy ones become hot.
int64_t writer_heat(const struct writer *writer);
