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

enum audit_mode {
    AUDIT_VERIFY,  // changes nothing
    AUDIT_REPAIR,  // corrects wrong counts
    AUDIT_REBUILD, // corrects wrong counts and writes missing ones
};

// At most one is not "".
struct audit_scope {
    const char *workspace_id;
    const char *channel_id;
    const char *user_id;
};

struct audit_totals {
    int64_t pairs;   // compared
    int64_t known;   // of these, known to Redis
    int64_t drifted; // of those, wrong
    int64_t mended;  // written to Redis
};

// Called after each page but the last; false stops the run.
typedef bool audit_progress_fn(void *arg, const struct audit_totals *totals);

struct audit_options {
    struct session *session;
    struct pipeline *pipeline;
    enum audit_mode mode;
    struct audit_scope scope;
    audit_progress_fn *progress;
    void *arg;
};

// About how many pairs the scope has. -ERROR_INVALID_ARGUMENTS: there is no such workspace, channel
// or user.
NODISCARD int audit_size(const struct audit_options *options, int64_t *ret_pairs);

// Runs over all pairs of the scope. `*ret_totals` is also set on failure. -ERROR_UNAVAILABLE (also
// if `progress` stopped the run), …
NODISCARD int audit_run(const struct audit_options *options, struct audit_totals *ret_totals);

// Runs over at most `count` pairs from a random starting point, in channels of any kind and in any
// part of a large one.
NODISCARD int audit_sample(const struct audit_options *options, int64_t count,
                           struct audit_totals *ret_totals);
