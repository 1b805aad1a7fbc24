// SPDX-License-Identifier: Apache-2.0
// Compares unread counts in Redis with counts in Postgres, at exactly the same state of channel and
// member, and corrects them. Processes the pairs (channel, member) page by page over one session
// and one pipeline, so the load is bounded. Blocking: for commands, and for threads other than
// loops.
#pragma once

#include "cache/pipeline.h"
#include "store/session.h"

#include <stdbool.h>
#include <stdint.h>

enum audit_mode {
    AUDIT_VERIFY,  // writes nothing
    AUDIT_REPAIR,  // corrects wrong counts
    AUDIT_REBUILD, // corrects wrong counts and writes missing ones
};

// At most one of them is not "".
struct audit_scope {
    const char *workspace_id;
    const char *channel_id;
    const char *user_id;
};

struct audit_totals {
    int64_t pairs;    // compared
    int64_t known;    // of these, known to Redis
    int64_t drifted;  // of those, wrong
    int64_t repaired; // written to Redis
};

// Called after each page except the last. Returning false stops the run.
typedef bool audit_progress_fn(void *arg, const struct audit_totals *totals);

struct audit_options {
    struct session *session;
    struct pipeline *pipeline;
    enum audit_mode mode;
    struct audit_scope scope;
    audit_progress_fn *progress;
    void *arg;
};

// Estimates the number of pairs in the scope. -ERROR_INVALID_ARGUMENTS: no such workspace, channel
// or user.
NODISCARD int audit_size(const struct audit_options *options, int64_t *ret_pairs);

// Processes all pairs of the scope. `*ret_totals` is set on failure, too. -ERROR_UNAVAILABLE (also
// if `progress` stopped the run), …
NODISCARD int audit_run(const struct audit_options *options, struct audit_totals *ret_totals);

// Processes at most `count` pairs from a random starting point, which may be any channel and any
// member of a large one.
NODISCARD int audit_sample(const struct audit_options *options, int64_t count,
                           struct audit_totals *ret_totals);
