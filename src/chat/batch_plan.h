// SPDX-License-Identifier: Apache-2.0
// What post_batch() is told of a batch beside its posts: which of them share a channel or an
// author, and their order there. Computed from the posts alone.
#pragma once

#include "chat/writer.h"

// Where one post stands. Channels and authors are numbered from 1, in the order of their names.
struct batch_place {
    int64_t channel;
    int64_t rank;   // how many posts of the channel come before it
    int64_t ord;    // counted posts of the channel up to it
    int64_t author; // an author in a channel
    int64_t own;    // counted posts of that author in the channel up to it
};

// The posts of one channel.
struct batch_channel {
    const struct post *post;         // one of them
    const struct post *last_counted; // NULL: none
    int64_t events;
    int64_t counted;
    int64_t last; // which of the events is last_counted, from 1; 0: none
};

// The posts of one author in one channel.
struct batch_author {
    const struct post *post; // one of them
    int64_t channel;
    int64_t posts; // counted ones
};

// Valid as long as the posts that it was made of; the numbers in it, until it is made again.
struct batch_plan {
    struct batch_place *places;     // by post
    struct batch_channel *channels; // in the order of channel, workspace
    struct batch_author *authors;   // in the order of channel, workspace, author
    struct batch_sorted *sorted;
    int count_max;
    int count;
    int channel_count;
    int author_count;
    bool has_keys;
    bool has_replies;
    bool has_mentions;
};

// Makes room for batches of up to `count_max` posts. -ERROR_MEMORY: to be ended all the same.
NODISCARD int batch_plan_init(struct batch_plan *ret_plan, int count_max);
void batch_plan_done(struct batch_plan *plan);

// Plans `count` posts (1 to count_max). Takes O(n log n).
void batch_plan_make(struct batch_plan *plan, struct post *const *posts, int count);

// Whether two posts are by one author in one channel: these are committed in the order they came.
bool batch_plan_same_author(const struct post *one, const struct post *other);

// Whether two posts have the same author and key.
bool batch_plan_same_key(const struct post *one, const struct post *other);
