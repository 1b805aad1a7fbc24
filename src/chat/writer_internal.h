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

// What a channel's share of the batch begins with (START_ORD is the ord before it): the columns of
// post_batch()'s answer.
enum start { START_TS, START_SEQ, START_ORD, START_TRAITS, START_KINDS };

// How many batches may be under way at once: when Postgres has committed one, it finds the next one
// already there and need not wait for this loop.
enum { BATCHES_IN_WORK = 2 };

// Posts 0 to count-1, NULL once answered or given back to the group.
struct batch {
    struct writer *writer;
    char id[OUTBOX_ID_SIZE];
    struct post **posts;
    struct place *places;
    int64_t *starts[START_KINDS]; // by channel, once the batch is committed
    int count;
    int answered; // how many of them, once it is committed
    bool in_work;
    struct loop_timer *look_again; // looks for the batch while it is not known if it is committed
    int64_t look_until_ms;         // until when it does
    int channel_count;
    bool has_replies;
};

// Has BATCHES_IN_WORK batches under way, and one more that is being answered.
struct writer {
    struct loop *loop;
    struct store *store;
    struct group *group;
    struct writer_options options;
    char name[ID_SIZE]; // of this writer, unique: its batches' ids begin with it
    uint64_t batch_number;
    struct batch batches[BATCHES_IN_WORK + 1];
    struct batch *answering; // the one committed last, NULL once that is done
    // The row and events of the last commit, to be told of; "": told already.
    char told_id[OUTBOX_ID_SIZE];
    bool is_offered;
    struct event **events; // room for a batch's
    struct post **waiting; // the same
    size_t event_count;
};

// Places the posts of the batch and fills in the parameters of post_batch(). -ERROR_MEMORY.
NODISCARD int batch_params(struct params *params, struct batch *batch);

// Whether post_one() serves for the batch, and its parameters.
bool batch_is_one(const struct batch *batch);
void batch_one_params(struct params *params, struct batch *batch);

// Fills in the parameters of post_check().
void batch_check_params(struct params *params, const struct batch *batch);

// Whether two posts are by one author in one channel: these are committed in the order they came.
bool writer_same_place(const struct post *one, const struct post *other);

// Whether two posts have the same author and key.
bool writer_same_key(const struct post *one, const struct post *other);

// Fills in workspace, channel and user.
void writer_event_name(struct event *event, const struct post *post);
