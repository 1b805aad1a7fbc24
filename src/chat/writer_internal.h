// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_plan.h"

#include "base/id.h"
#include "chat/writer.h"
#include "store/aside.h"

// What a channel's share of the batch begins with (START_ORD is the ord before it): the columns of
// post_batch()'s answer.
enum batch_start { START_TS, START_SEQ, START_ORD, START_TRAITS, START_KINDS };

// How many batches may be under way at once: when Postgres has committed one, it finds the next one
// already there and need not wait for this loop.
enum { BATCHES_IN_WORK = 2 };

// The group's batches, one of which may be answered while the others are under way; and batches of
// one post that found a row locked.
enum { BATCHES_OF_GROUP = BATCHES_IN_WORK + 1, BATCHES_ASIDE = 4 };
enum { BATCH_OF_SUSPECTS = BATCHES_OF_GROUP + BATCHES_ASIDE, BATCHES_MAX };

// Posts 0 to count-1, NULL once answered or given back to the group.
struct batch {
    uint32_t tag;
    struct writer *writer;
    char id[OUTBOX_ID_SIZE];
    struct post **posts;
    struct batch_plan plan;         // since it was sent
    int64_t *starts[START_KINDS];   // by channel, once the batch is committed
    char (*parents)[EVENT_ID_SIZE]; // by post, the author of the message replied to, likewise
    int count;
    int answered; // how many of them, once it is committed
    bool in_work;
    char aside_key[ASIDE_KEY_SIZE]; // "": the batch is one of the group's
    struct loop_timer *look_again;  // looks for the batch while it is not known if it is committed
    int64_t look_until_ms;          // until when it does
};

// Authors of whose posts one was refused just now.
struct suspects {
    struct suspect *by_user; // uthash, the first suspected first
    struct list posts;       // theirs, to be checked
    int waiting;             // posts, with those being checked
    struct loop_timer *timer;
};

// Has BATCHES_IN_WORK batches under way, those that are aside, and one more that is being answered.
struct writer {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    struct group *group;
    struct aside *aside;
    struct suspects suspects;
    int64_t hot_until_ms; // until when some channels may be hot
    bool waited_in_vain;  // the last batch that found a lock found no locked row
    struct writer_options options;
    char name[ID_SIZE]; // of this writer, unique: its batches' ids begin with it
    uint64_t batch_number;
    struct batch batches[BATCHES_MAX];
    struct batch *answering; // the one committed last, NULL once that is done
    // The row and events of the last commit, to be told of; "": told already.
    char told_id[OUTBOX_ID_SIZE];
    bool is_offered;
    struct event **events; // room for a batch's
    struct post **waiting; // the same
    size_t event_count;
};

// Answers a post: it was not posted.
void post_fail(struct post *post, int r);

// Answers one of the batch's posts; with `r`, that it was not posted.
void batch_post_answer(struct batch *batch, int index, const struct post_outcome *outcome);
void batch_post_fail(struct batch *batch, int index, int r);

// Ends a batch: whatever was not answered gets `r`.
void batch_end(struct batch *batch, int r);

// Runs what is left of the batch again, except what waited too long already.
void batch_repeat(struct batch *batch, bool alone);

// One of the batches from number `first` up to `end` that is neither in work nor being answered;
// NULL: none.
struct batch *batch_free(struct writer *writer, int first, int end);

// Sends the posts of the batch.
void batch_send(struct batch *batch, enum store_lane lane);

// writer_aside.c: posts that wait for a locked row. The batch found one: finds out whose posts have
// to wait for it, and runs the others again.
void batch_locked(struct batch *batch);

// Puts the post behind those that wait already for a row that it needs; false: there is none.
bool writer_joins_aside(struct writer *writer, struct post *post);

NODISCARD int writer_aside_new(struct writer *writer);
int writer_aside_waiting(const struct writer *writer);

// A batch that was aside has ended: what waits behind it goes the common way again.
void writer_aside_done(struct batch *batch);

// writer_check.c: posts that are refused. Finds out which posts of a batch may not be posted, or
// are there already, and answers them; the others go again.
void writer_check(struct batch *batch);

// Puts the post aside to be checked first, if its author is suspect; false: it is not.
bool writer_joins_suspects(struct writer *writer, struct post *post);

NODISCARD int writer_suspects_new(struct writer *writer);
void writer_suspects_finish(struct writer *writer); // answers what waits with -ERROR_UNAVAILABLE
void writer_suspects_free(struct writer *writer);

// Puts a post of the batch behind those that wait for the same row: its channel's, or
// (LOCKED_MEMBER) what its author has in the channel.
enum locked { LOCKED_NOT, LOCKED_CHANNEL, LOCKED_MEMBER }; // as post_locked() answers
void batch_put_aside(struct batch *batch, int index, enum locked locked);

// What a batch is told of hot channels (docs/decisions/2026-11-23-hot-channels.md): 0, there are
// none; 1, there may be; 2, and those that are posted to often become hot.
int64_t writer_heat(struct writer *writer);

// writer_params.c: the statements, and their parameters for the posts of a batch. post_batch(), or
// post_one() where that serves, of a batch with a plan:
const struct statement *batch_post_params(struct params *params, const struct batch *batch);
const struct statement *batch_check_params(struct params *params, const struct batch *batch);
const struct statement *batch_locked_params(struct params *params, const struct batch *batch);
