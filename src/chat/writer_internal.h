// SPDX-License-Identifier: Apache-2.0
// The writer's structs, shared by its files: writer.c, writer_aside.c, writer_check.c and
// writer_params.c.
#pragma once

#include "batch_plan.h"
#include "publication.h"

#include "base/id.h"
#include "chat/writer.h"
#include "store/aside.h"

// The columns of post_batch()'s reply: one array each, with a value per channel. START_ORD is the
// ord before the batch.
enum batch_start { START_TS, START_SEQ, START_ORD, START_TRAITS, START_KINDS };

// Batches in flight at the same time: after committing one, Postgres finds the next already
// waiting.
enum { BATCHES_IN_WORK = 2 };

// The group's batches, one of which may be in the process of being answered while the others are in
// flight; and batches of a single post that found a row locked.
enum { BATCHES_OF_GROUP = BATCHES_IN_WORK + 1, BATCHES_ASIDE = 4 };
enum { BATCH_OF_SUSPECTS = BATCHES_OF_GROUP + BATCHES_ASIDE, BATCHES_MAX };

// Posts 0 to count-1 are NULL once answered or returned to the group.
struct batch {
    uint32_t tag;
    struct writer *writer;
    char id[OUTBOX_ID_SIZE];
    struct post **posts;
    struct batch_plan plan;         // made when the batch is sent
    int64_t *starts[START_KINDS];   // per channel; valid after the commit
    char (*parents)[EVENT_ID_SIZE]; // per post, the author of the thread's root; valid after the
                                    // commit
    int count;
    int answered; // posts answered so far; valid after the commit
    bool in_work;
    char aside_key[ASIDE_KEY_SIZE]; // "": the batch is one of the group's
    struct loop_timer
        *recheck_timer;    // retries the lookup while the outcome of the commit is unknown
    int64_t find_until_ms; // when the lookup gives up
};

// Authors with a recently refused post.
struct suspects {
    struct suspect *by_user; // uthash, oldest entry first
    struct list posts;       // their posts, to be checked
    int waiting;             // posts, including those being checked
    struct loop_timer *timer;
};

// Batches: BATCHES_IN_WORK in flight, one being answered, those set aside, and one of suspects.
struct writer {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    struct group *group;
    struct aside *aside;
    struct suspects suspects;
    int64_t hot_until_ms; // until when other instances may have made channels hot
    bool found_no_lock;   // the last batch that failed on a lock found no locked row afterwards
    struct writer_options options;
    char name[ID_SIZE]; // unique to this writer; prefix of its batches' ids
    uint64_t batch_number;
    struct batch batches[BATCHES_MAX];
    struct batch *answering; // the batch committed last; NULL once answered
    struct publication publication;
    struct post **waiting; // capacity: one batch
};

// Answers a post that was not posted, with the error `r`.
void post_fail(struct post *post, int r);

// Answers one post of the batch; the second form with an error.
void batch_post_answer(struct batch *batch, int index, const struct post_outcome *outcome);
void batch_post_fail(struct batch *batch, int index, int r);

// Ends a batch: posts not answered yet get `r`.
void batch_end(struct batch *batch, int r);

// Runs the remaining posts of the batch again, except those past their deadline.
void batch_repeat(struct batch *batch, bool alone);

// An unused batch with a number from `first` to `end` - 1; NULL: none.
struct batch *batch_free(struct writer *writer, int first, int end);

// Sends the posts of the batch.
void batch_send(struct batch *batch, enum store_lane lane);

// writer_aside.c: posts that wait for a locked row. Called when a batch has failed on a locked row:
// finds the posts that need the row, sets them aside, and runs the others again.
void batch_locked(struct batch *batch);

// Queues the post behind posts that already wait for a row it needs. False: there are none.
bool writer_joins_aside(struct writer *writer, struct post *post);

NODISCARD int writer_aside_new(struct writer *writer);
int writer_aside_waiting(const struct writer *writer);

// A batch that was set aside has ended: posts waiting behind it return to the group.
void writer_aside_done(struct batch *batch);

// writer_check.c: refused posts. Answers the posts of a batch that are not allowed or are
// duplicates, and runs the others again.
void writer_check(struct batch *batch);

// Sets the post aside to be checked first if its author is suspect. False: not suspect.
bool writer_joins_suspects(struct writer *writer, struct post *post);

NODISCARD int writer_suspects_new(struct writer *writer);
void writer_suspects_finish(struct writer *writer); // answers waiting posts with -ERROR_UNAVAILABLE
void writer_suspects_free(struct writer *writer);

// Queues a post of the batch behind those that wait for the same row: its channel's, or the
// author's membership in it (LOCKED_MEMBER).
enum locked { LOCKED_NOT, LOCKED_CHANNEL, LOCKED_MEMBER }; // as returned by post_locked()
void batch_put_aside(struct batch *batch, int index, enum locked locked);

// Tells post_batch() about hot channels (docs/decisions/2026-11-23-hot-channels.md): 0, there are
// none; 1, there may be; 2, there may be, and busy ones become hot.
int64_t writer_heat(struct writer *writer);

// writer_params.c: the statements and their parameters. post_batch(), or post_one() where it
// suffices, for a batch with a plan:
const struct statement *batch_post_params(struct params *params, const struct batch *batch);
const struct statement *batch_check_params(struct params *params, const struct batch *batch);
const struct statement *batch_locked_params(struct params *params, const struct batch *batch);
