// SPDX-License-Identifier: Apache-2.0
// Compares the unread counts that Redis would give with those that Postgres gives for exactly the
// same state of channel and member, and corrects them. Goes through pairs (channel, member) page by
// page, with one session and one pipeline, so that its load is bounded. For threads other than
// loops, and for commands.
#pragma once

#include "cache/pipeline.h"
#include "store/session.h"

#include <stdbool.h>
#include <stdint.h>

enum repair_mode {
    REPAIR_VERIFY,  // changes nothing
    REPAIR_AUDIT,   // corrects wrong counts
    REPAIR_REBUILD, // corrects wrong counts and writes missing ones
};

// At most one is not "".
struct repair_scope {
    const char *workspace_id;
    const char *channel_id;
    const char *user_id;
};

struct repair_totals {
    int64_t pairs;   // compared
    int64_t known;   // of these, known to Redis
    int64_t drifted; // of those, wrong
    int64_t mended;  // written to Redis
};

// Called after each page but the last; false stops the run.
typedef bool repair_progress_fn(void *arg, const struct repair_totals *totals);

struct repair_options {
    struct session *session;
    struct pipeline *pipeline;
    enum repair_mode mode;
    struct repair_scope scope;
    repair_progress_fn *progress;
    void *arg;
};

// About how many pairs the scope has. -ERROR_INVALID_ARGUMENTS: there is no such workspace, channel
// or user.
NODISCARD int repair_size(const struct repair_options *options, int64_t *ret_pairs);

// Runs over all pairs of the scope. `*ret_totals` is also set on failure. -ERROR_UNAVAILABLE (also
// if `progress` stopped the run), …
NODISCARD int repair_run(const struct repair_options *options, struct repair_totals *ret_totals);

// Runs over at most `count` pairs from a random starting point, in channels of any kind and in any
// part of a large one.
NODISCARD int repair_sample(const struct repair_options *options, int64_t count,
                            struct repair_totals *ret_totals);
