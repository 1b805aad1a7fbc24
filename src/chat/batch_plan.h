// SPDX-License-Identifier: Apache-2.0
// The layout of a batch for post_batch(): which posts share a channel or an author, and their order
// within each. Computed from the posts alone.
#pragma once

#include "chat/writer.h"

// The position of one post. Channels and authors are numbered from 1, sorted by id.
struct batch_place {
    int64_t channel;
    int64_t rank;   // number of earlier posts in the channel
    int64_t ord;    // counted posts in the channel so far, including this one
    int64_t author; // number of the pair of channel and author
    int64_t own;    // the author's counted posts in the channel so far, including this one
};

// The posts of one channel.
struct batch_channel {
    const struct post *post;         // any of them
    const struct post *last_counted; // NULL: none
    int64_t events;
    int64_t counted;
    int64_t last; // position of last_counted among the events, from 1; 0: none
};

// The posts of one author in one channel.
struct batch_author {
    const struct post *post; // any of them
    int64_t channel;
    int64_t posts; // counted posts only
};

// The plan points to the posts, and is valid as long as they are; batch_plan_make() overwrites it.
struct batch_plan {
    struct batch_place *places;     // one per post
    struct batch_channel *channels; // sorted by channel, workspace
    struct batch_author *authors;   // sorted by channel, workspace, author
    struct batch_sorted *sorted;
    int count_max;
    int count;
    int channel_count;
    int author_count;
    bool has_keys;
    bool has_files;
    bool has_replies;
    bool has_mentions;
};

// Allocates room for batches of up to `count_max` posts. -ERROR_MEMORY; the plan must be freed even
// then.
NODISCARD int batch_plan_init(struct batch_plan *ret_plan, int count_max);
void batch_plan_done(struct batch_plan *plan);

// Plans `count` posts (1 to count_max), in O(n log n).
void batch_plan_make(struct batch_plan *plan, struct post *const *posts, int count);

// Whether two posts have the same author and channel: these are committed in order of arrival.
bool batch_plan_same_author(const struct post *one, const struct post *other);

// Whether two posts have the same author and key.
bool batch_plan_same_key(const struct post *one, const struct post *other);
