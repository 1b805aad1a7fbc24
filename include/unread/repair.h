// SPDX-License-Identifier: Apache-2.0
// Compares what Redis would answer for a member with what Postgres counts, of the very same state
// of channel and member, and mends it. Goes over pairs (channel, member) page by page, with one
// session and one pipeline, so that its load is bounded. A thread's or a tool's.
#pragma once

#include "cache/pipeline.h"
#include "store/session.h"

#include <stdbool.h>
#include <stdint.h>

enum repair_mode {
    REPAIR_VERIFY,  // changes nothing
    REPAIR_AUDIT,   // mends what is wrong
    REPAIR_REBUILD, // and lets Redis know what it does not
};

// At most one is not "".
struct repair_scope {
    const char *workspace_id;
    const char *channel_id;
    const char *user_id;
};

struct repair_totals {
    int64_t pairs;   // looked at
    int64_t known;   // counts that Redis would have told
    int64_t drifted; // of those, wrong ones
    int64_t mended;  // states written to Redis
};

// Told after each page that is not the last; false stops the run.
typedef bool repair_progress_fn(void *arg, const struct repair_totals *totals);

struct repair_options {
    struct session *session;
    struct pipeline *pipeline;
    enum repair_mode mode;
    struct repair_scope scope;
    repair_progress_fn *progress;
    void *arg;
};

// How many pairs there are in the scope, about.
NODISCARD int repair_size(const struct repair_options *options, int64_t *ret_pairs);

// All pairs of the scope. `*ret_totals` also tells how far it came when it fails:
// -ERROR_UNAVAILABLE, also where `progress` stopped it, …
NODISCARD int repair_run(const struct repair_options *options, struct repair_totals *ret_totals);

// At most `count` pairs from a random place on: of any kind of channel, and of any part of a large
// one.
NODISCARD int repair_sample(const struct repair_options *options, int64_t count,
                            struct repair_totals *ret_totals);
