// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/id.h"
#include "chat/writer.h"

// Where one post stands in its batch. Groups are numbered from 1 in the order of their names.
struct place {
    const struct post *post;
    int index; // in the batch
    bool counted;
    bool begins_channel; // first of its group, in the order of channels …
    bool begins_author;  // … and of authors
    int64_t channel;
    int64_t rank;
    int64_t ord;
    int64_t author;
    int64_t own;
    char parent[EVENT_ID_SIZE]; // author of the message replied to, once the batch is committed
};

// Where a channel's share of the batch begins (the ord is the one before): the columns of
// post_batch()'s answer.
enum start { START_TS, START_SEQ, START_ORD, START_TRAITS, START_KINDS };

// Posts 0 to count-1, NULL once answered or given back to the group.
struct batch {
    char id[OUTBOX_ID_SIZE];
    struct post **posts;
    struct place *places;
    int64_t *starts[START_KINDS]; // by channel, once the batch is committed
    int count;
    int answered; // how many of them, once it is committed
    int channel_count;
    bool has_replies;
};

// One batch is in work at a time, and one more is being answered.
struct writer {
    struct loop *loop;
    struct store *store;
    struct group *group;
    struct loop_timer *look_again;
    writer_told_fn *told;
    void *arg;
    char name[ID_SIZE]; // of this writer, unique: its batches' ids begin with it
    uint64_t batch_number;
    struct batch batches[2];
    struct batch *batch;     // in work
    struct batch *answering; // the one before
    int64_t look_until_ms;
    // What was committed last, told of at the end of the turn.
    char told_id[OUTBOX_ID_SIZE];
    struct event **events; // room for a batch's
    size_t event_count;
};

// Places the posts of the batch and fills in the parameters of post_batch(). -ERROR_MEMORY.
NODISCARD int batch_params(struct params *params, struct batch *batch);

// Whether post_one() serves for the batch, and its parameters.
bool batch_is_one(const struct batch *batch);
void batch_one_params(struct params *params, struct batch *batch);

// Fills in those of post_check().
void batch_check_params(struct params *params, const struct batch *batch);

// Whether two posts have the same author and key.
bool writer_same_key(const struct post *one, const struct post *other);

// Fills in who and where.
void writer_event_name(struct event *event, const struct post *post);
