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
};

// What is known of a channel before the batch: the columns of post_batch()'s answer.
enum start { START_TS, START_SEQ, START_ORD, START_TYPE, START_KINDS };

// One batch is in work at a time: items 0 to count-1, NULL once answered or given back to the
// group.
struct writer {
    struct loop *loop;
    struct store *store;
    struct group *group;
    struct loop_timer *look_again;
    writer_told_fn *told;
    void *arg;
    char name[ID_SIZE]; // of this writer, unique: its batches' ids begin with it
    uint64_t batch_number;
    char batch_id[OUTBOX_ID_SIZE];
    struct post **batch;
    struct place *places;         // of the posts of the batch
    int64_t *starts[START_KINDS]; // by channel, once the batch is committed
    int count;
    int channel_count;
    bool has_replies;
    int64_t look_until_ms;
    // What was committed last, told of at the end of the turn.
    char told_id[OUTBOX_ID_SIZE];
    struct event **events; // room for a batch's
    size_t event_count;
};

// Places the posts of the batch and fills in the parameters of post_batch(). -ERROR_MEMORY.
NODISCARD int writer_batch_params(struct params *params, struct writer *writer);

// Fills in those of post_check().
void writer_check_params(struct params *params, struct post *const *posts, int count);

// Whether two posts have the same author and key.
bool writer_same_key(const struct post *one, const struct post *other);

// Fills in who and where.
void writer_event_name(struct event *event, const struct post *post);
