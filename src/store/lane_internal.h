// SPDX-License-Identifier: Apache-2.0
// One lane of a store: a connection that comes back by itself, and the calls on their way through
// it.
//
//   store_call ─► queued ──lane_flush()──► sent ──Sync──► answered
//                    └────── no connection ──┴──────────► refused (at the end of the turn)
//
// A lane is DOWN (its timer waits to try again), CONNECTING (a thread does it), GREETING (its timer
// limits that) or UP (its timer watches the oldest call that was sent).
#pragma once

#include "base/list.h"
#include "store/store.h"

#include "postgres_internal.h"

struct lane_call {
    struct list link;
    const struct statement *statement;
    struct params params; // gone once sent
    size_t bytes;         // of the parameters
    store_fn *fn;
    void *arg;
    PGresult *result; // kept until the Sync, which commits
    int r;
    bool unknown;
    bool locked;
    bool preparing; // the next result is that of preparing the statement
};

typedef void lane_call_fn(struct store *store, struct lane_call *call);
struct lane;

struct lane_options {
    const char *name;
    struct store *store;
    struct loop *loop;
    const struct store_options *settings;
    const struct postgres_keywords *keywords;
    lane_call_fn *answer; // calls back at once
    lane_call_fn *refuse; // keeps the call for the end of the turn
    // Makes the call that a connection begins with, whose answer ends with lane_greeted() or
    // lane_reject().
    struct lane_call *(*greet)(struct store *store, const struct lane *lane);
};

// Makes a lane and begins to connect.
NODISCARD int lane_new(const struct lane_options *options, struct lane **ret_lane);
// Calls still on their way are refused.
void lane_free(struct lane *lane);

// The first call of the connection was answered: the lane is up, unless it was lost meanwhile.
void lane_greeted(struct lane *lane);

// What was answered says that the connection is of no use: another will be tried later.
void lane_reject(struct lane *lane);

// Takes the call, or refuses it.
void lane_call(struct lane *lane, struct lane_call *call);

// Sends what is queued; refuses it when there is no connection to wait for.
void lane_flush(struct lane *lane);

// See store_pull(). The second calls back, at the end of the turn, with what the first took over.
void lane_pull(struct lane *lane);
void lane_read_pulled(struct lane *lane);

// From now on calls no longer wait for the first connection.
void lane_end_patience(struct lane *lane);

bool lane_is_up(const struct lane *lane);
int lane_count(const struct lane *lane); // calls queued or sent
void lane_on_up(struct lane *lane, loop_fn *fn, void *arg);
