// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/id.h"
#include "chat/writer.h"

// One batch is in work at a time: items 0 to count-1, NULL once answered or given back to the group.
struct writer {
    struct store *store;
    struct group *group;
    struct loop_timer *look_again;
    writer_told_fn *told;
    void *arg;
    char name[ID_SIZE]; // of this writer, unique: its batches' ids begin with it
    uint64_t batch_number;
    char batch_id[OUTBOX_ID_SIZE];
    struct post **batch;
    struct event **events; // room for a batch's
    int count;
    bool has_replies;
    int64_t look_until_ms;
};

// Fills in the parameters of post_batch(). Returns whether any post is a reply. -ERROR_MEMORY.
NODISCARD int writer_batch_params(struct params *params, const char *batch_id, struct post *const *posts, int count);

// Fills in those of post_check().
void writer_check_params(struct params *params, struct post *const *posts, int count);

// Whether two posts have the same author and key.
bool writer_same_key(const struct post *one, const struct post *other);

// Fills in who and where.
void writer_event_name(struct event *event, const struct post *post);
